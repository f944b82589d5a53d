"""Fine-tuning: a frozen backbone, a head that learns first, and a callback that unfreezes."""

import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from pytorch_lightning.callbacks import Callback, LambdaCallback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Transfer(pl.LightningModule):
    def __init__(self, classes=3, lr=0.05):
        super().__init__()
        self.save_hyperparameters()
        self.backbone = nn.Sequential(nn.Linear(6, 12), nn.BatchNorm1d(12), nn.ReLU())
        self.head = nn.Linear(12, classes)
        for parameter in self.backbone.parameters():
            parameter.requires_grad = False
        self.backbone.eval()

    def forward(self, x):
        return self.head(self.backbone(x))

    def on_train_epoch_start(self):
        if not next(self.backbone.parameters()).requires_grad:
            self.backbone.eval()

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return {"loss": loss}

    def validation_step(self, batch, batch_idx, dataloader_idx=0):
        x, y = batch
        self.log("val_acc", (self(x).argmax(1) == y).float().mean(), add_dataloader_idx=True)

    def configure_optimizers(self):
        trained = filter(lambda p: p.requires_grad, self.parameters())
        return torch.optim.SGD(trained, lr=self.hparams.lr, momentum=0.9)


class Unfreeze(Callback):
    def __init__(self, epoch):
        self.epoch = epoch

    def on_train_epoch_start(self, trainer, pl_module):
        if trainer.current_epoch == self.epoch:
            pl_module.backbone.train()
            for parameter in pl_module.backbone.parameters():
                parameter.requires_grad = True
            trainer.optimizers[0].add_param_group({"params": pl_module.backbone.parameters()})


def main(root):
    pl.seed_everything(5)
    rng = np.random.default_rng(0)

    def data(n):
        y = rng.integers(0, 3, n)
        x = rng.normal(0, 0.4, (n, 6)).astype(np.float32)
        x[np.arange(n), y] += 2.0
        return TensorDataset(torch.tensor(x), torch.tensor(y))

    ends = []
    trainer = pl.Trainer(
        accelerator="cpu",
        max_epochs=4,
        default_root_dir=root,
        callbacks=[Unfreeze(2), LambdaCallback(on_train_end=lambda *args: ends.append(1))],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Transfer()
    train = DataLoader(data(60), batch_size=10, shuffle=True)
    trainer.fit(
        model, train, [DataLoader(data(20), batch_size=10), DataLoader(data(21), batch_size=7)]
    )
    metrics = trainer.callback_metrics
    return {
        "first": float(metrics["val_acc/dataloader_idx_0"]),
        "second": float(metrics["val_acc/dataloader_idx_1"]),
        "groups": len(trainer.optimizers[0].param_groups),
        "ends": len(ends),
    }
