"""An autoencoder whose encoder gives codes afterwards."""

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn, optim, utils


class LitAutoEncoder(pl.LightningModule):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def training_step(self, batch, batch_idx):
        (x,) = batch
        x = x.view(x.size(0), -1)
        loss = nn.functional.mse_loss(self.decoder(self.encoder(x)), x)
        self.log("train_loss", loss)
        return loss

    def predict_step(self, batch, batch_idx):
        (x,) = batch
        return self.encoder(x.view(x.size(0), -1))

    def configure_optimizers(self):
        return optim.Adam(self.parameters(), lr=1e-2)


def main(root):
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3))
    decoder = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 16))
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(64, 2)) @ rng.normal(size=(2, 16))
    data = utils.data.TensorDataset(torch.tensor(hidden.astype(np.float32).reshape(64, 4, 4)))
    loader = utils.data.DataLoader(data, batch_size=8, shuffle=True)
    model = LitAutoEncoder(encoder, decoder)
    trainer = pl.Trainer(
        limit_train_batches=6,
        max_epochs=8,
        default_root_dir=root,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        gradient_clip_val=1.0,
    )
    trainer.fit(model=model, train_dataloaders=loader)
    loss = float(trainer.callback_metrics["train_loss"])
    codes = trainer.predict(model, utils.data.DataLoader(data, batch_size=16))
    encoder.eval()
    return {
        "codes": len(codes),
        "width": codes[0].shape[1],
        "loss": loss,
        "steps": trainer.global_step,
    }
