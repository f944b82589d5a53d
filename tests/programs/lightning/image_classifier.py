"""A convolutional classifier with a DataModule, early stopping, checkpoints and a test run."""

import numpy as np
import pytorch_lightning as pl
import torch
import torch.nn.functional as F
from pytorch_lightning.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from pytorch_lightning.loggers import CSVLogger
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Shapes(pl.LightningDataModule):
    def __init__(self, batch_size=16):
        super().__init__()
        self.save_hyperparameters()

    def prepare_data(self):
        pass

    def setup(self, stage=None):
        rng = np.random.default_rng(0)
        labels = rng.integers(0, 3, 160)
        images = rng.normal(0, 0.3, (160, 1, 8, 8)).astype(np.float32)
        for image, label in zip(images, labels, strict=True):
            image[0, label : label + 4, 2:6] += 1.5
        full = TensorDataset(torch.tensor(images), torch.tensor(labels))
        self.train, self.val, self.test = random_split(full, [112, 24, 24])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=self.hparams.batch_size, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.val, batch_size=self.hparams.batch_size)

    def test_dataloader(self):
        return DataLoader(self.test, batch_size=self.hparams.batch_size)


class Classifier(pl.LightningModule):
    def __init__(self, channels=4, lr=0.02):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(channels * 16, 3),
        )

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def evaluate(self, batch, stage):
        x, y = batch
        logits = self(x)
        accuracy = (logits.argmax(dim=1) == y).float().mean()
        self.log(f"{stage}_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log(f"{stage}_acc", accuracy, prog_bar=True)

    def validation_step(self, batch, batch_idx):
        self.evaluate(batch, "val")

    def test_step(self, batch, batch_idx):
        self.evaluate(batch, "test")

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=3)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": scheduler, "monitor": "val_loss"},
        }


def main(root):
    pl.seed_everything(7)
    keep = ModelCheckpoint(root, monitor="val_acc", mode="max", filename="{epoch}-{val_acc:.2f}")
    trainer = pl.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=CSVLogger(root),
        callbacks=[keep, EarlyStopping("val_loss", mode="min"), LearningRateMonitor()],
        enable_progress_bar=False,
        enable_model_summary=False,
        log_every_n_steps=2,
    )
    data = Shapes()
    trainer.fit(Classifier(), datamodule=data)
    best = Classifier.load_from_checkpoint(keep.best_model_path)
    result = trainer.test(best, datamodule=data, verbose=False)[0]
    return {"accuracy": result["test_acc"], "steps": trainer.global_step}
