"""A character model: embedding, LSTM, tied to nothing; warm-up per step, accumulation, clipping."""

import math

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

TEXT = "the quick brown fox jumps over the lazy dog and runs away from the quick dog " * 3


class Characters(Dataset):
    def __init__(self, text, block_size):
        self.vocab = sorted(set(text))
        index = {c: i for i, c in enumerate(self.vocab)}
        self.data = [index[c] for c in text]
        self.block_size = block_size

    def __len__(self):
        return (len(self.data) - 1) // self.block_size

    def __getitem__(self, i):
        start = i * self.block_size
        chunk = torch.tensor(self.data[start : start + self.block_size + 1])
        return chunk[:-1], chunk[1:]


class CharLSTM(pl.LightningModule):
    def __init__(self, vocab_size, width=16, lr=0.02, warmup=4):
        super().__init__()
        self.save_hyperparameters()
        self.embed = nn.Embedding(vocab_size, width)
        self.lstm = nn.LSTM(width, width, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.head = nn.Linear(width, vocab_size)
        self.loss = nn.CrossEntropyLoss()

    def forward(self, x):
        out, _ = self.lstm(self.embed(x))
        return self.head(self.drop(out))

    def step(self, batch):
        x, y = batch
        logits = self(x)
        return self.loss(logits.view(-1, logits.size(-1)), y.reshape(-1))

    def training_step(self, batch, batch_idx):
        loss = self.step(batch)
        self.log("train_loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        loss = self.step(batch)
        self.log("val_loss", loss)
        return loss

    def on_validation_epoch_end(self):
        self.perplexity = math.exp(float(self.trainer.callback_metrics.get("val_loss", 0.0)))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=0.0)
        warm = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / self.hparams.warmup)
        )
        return [optimizer], [{"scheduler": warm, "interval": "step", "frequency": 1}]


def main(root):
    pl.seed_everything(11, workers=True)
    half = len(TEXT) * 2 // 3
    train, val = Characters(TEXT[:half], 10), Characters(TEXT[half:] + "zebras!?", 10)
    model = CharLSTM(len(val.vocab) + len(train.vocab))
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=5,
        accumulate_grad_batches=2,
        gradient_clip_val=0.5,
        val_check_interval=0.5,
        default_root_dir=root,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(model, DataLoader(train, batch_size=4, shuffle=True), DataLoader(val, batch_size=4))
    return {"perplexity": model.perplexity, "steps": trainer.global_step}
