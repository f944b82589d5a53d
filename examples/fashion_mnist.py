"""Trains a CNN on Fashion-MNIST to a test accuracy of 0.91 and more.

The data are the four IDX files of the data set, plain or .gz. `--data FOLDER` says where they are;
`--download` gets them. On Debian and Ubuntu `apt install dataset-fashion-mnist` is enough.
"""

import argparse
import time

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import LearningRateMonitor, ModelCheckpoint
from minitorch.data import DataLoader, datasets, random_split
from minitorch.loggers import TensorBoardLogger
from minitorch.trainer import TaskModule, Trainer


class Fashion(TaskModule):
    """Two blocks of convolution, and two linear layers, for images (B, 1, 28, 28)."""

    def __init__(self, total_steps: int, width: int = 24, max_lr: float = 4e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            *(nn.Conv2d(1, width, 3, padding=1), nn.MaxPool2d(2)),
            *(nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, 2 * width, 3, padding=1), nn.MaxPool2d(2)),
            *(nn.BatchNorm2d(2 * width), nn.ReLU()),
            *(nn.Flatten(), nn.Dropout(0.3), nn.Linear(2 * width * 7 * 7, 128), nn.ReLU()),
            *(nn.Dropout(0.3), nn.Linear(128, 10)),
        )

    def forward(self, images):
        return self.net(images)

    def training_step(self, batch, batch_idx):
        images, labels = batch
        loss = nn.functional.cross_entropy(self(images), labels, label_smoothing=0.05)
        self.log("train/loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        self.log("val/acc", self.accuracy(batch), prog_bar=True)

    def test_step(self, batch, batch_idx):
        self.log("test/acc", self.accuracy(batch))

    def accuracy(self, batch):
        """Share of right answers in a batch."""
        images, labels = batch
        return (self(images).argmax(1) == labels).float().mean()

    def configure_optimizers(self):
        optimizer = mt.optim.AdamW(self.parameters(), lr=self.hparams.max_lr, weight_decay=0.01)
        schedule = mt.optim.lr_scheduler.OneCycleLR(
            optimizer, self.hparams.max_lr, total_steps=self.hparams.total_steps
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="data", help="folder with the IDX files")
    parser.add_argument("--download", action="store_true")
    parser.add_argument("--max-epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--log-dir", default="runs")
    args = parser.parse_args()

    mt.manual_seed(0)
    full = datasets.FashionMNIST(args.data, train=True, download=args.download)
    test = datasets.FashionMNIST(args.data, train=False, download=args.download)
    train, val = random_split(full, [55_000, 5_000])
    train_loader = DataLoader(train, batch_size=args.batch_size, shuffle=True, drop_last=True)
    val_loader, test_loader = DataLoader(val, batch_size=500), DataLoader(test, batch_size=500)

    start = time.perf_counter()
    trainer = Trainer(
        max_epochs=args.max_epochs,
        callbacks=[ModelCheckpoint(monitor="val/acc", mode="max"), LearningRateMonitor()],
        logger=TensorBoardLogger(args.log_dir, name="fashion_mnist"),
    )
    model = Fashion(total_steps=args.max_epochs * len(train_loader))
    result = trainer.fit(model, train_loader, val_loader)
    print(result)
    (metrics,) = trainer.test(result.best, test_loader)
    minutes = (time.perf_counter() - start) / 60
    print(f"test accuracy {metrics['test/acc']:.4f} in {minutes:.1f} minutes")


if __name__ == "__main__":
    main()
