"""Trains a small CNN on the UCI digits and reports on images that it never saw: `make demo`."""

import argparse
import os

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import EarlyStopping, LearningRateMonitor, ModelCheckpoint
from minitorch.data import DataLoader, datasets, random_split
from minitorch.loggers import TensorBoardLogger
from minitorch.trainer import TaskModule, Trainer


class DigitClassifier(TaskModule):
    """Two convolutions and two linear layers for images (B, 1, 8, 8)."""

    def __init__(self, width: int = 16, dropout: float = 0.25, lr: float = 3e-3) -> None:
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(
            *(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, 2 * width, 3, padding=1), nn.MaxPool2d(2)),
            *(nn.BatchNorm2d(2 * width), nn.ReLU(), nn.Flatten(), nn.Dropout(dropout)),
            *(nn.Linear(2 * width * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10)),
        )

    def forward(self, images):
        return self.net(images)

    def training_step(self, batch, batch_idx):
        loss, _ = self.evaluate(batch)
        self.log("train/loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        loss, accuracy = self.evaluate(batch)
        self.log_dict({"val/loss": loss, "val/acc": accuracy}, prog_bar=True)

    def test_step(self, batch, batch_idx):
        loss, accuracy = self.evaluate(batch)
        self.log_dict({"test/loss": loss, "test/acc": accuracy})

    def predict_step(self, batch, batch_idx):
        return self(batch[0]).argmax(1)

    def evaluate(self, batch):
        """Loss and accuracy of a batch."""
        images, labels = batch
        logits = self(images)
        accuracy = (logits.argmax(1) == labels).float().mean()
        return nn.functional.cross_entropy(logits, labels), accuracy

    def configure_optimizers(self):
        optimizer = mt.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = mt.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.93)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def print_confusion(predicted, labels) -> None:
    """Rows are true digits, columns predicted ones."""
    print("\ntrue \\ predicted" + "".join(f"{digit:4d}" for digit in range(10)))
    for digit in range(10):
        counts = [int(((predicted == k) & (labels == digit)).sum()) for k in range(10)]
        print(f"{digit:16d}" + "".join(f"{n or '·':>4}" for n in counts))


def save_curves(history, path: str) -> None:
    """Draws the losses over the updates."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4))
    for name in ("train/loss_step", "val/loss"):
        axes.plot(*zip(*history[name], strict=True), label=name)
    axes.set(xlabel="update", ylabel="cross-entropy", yscale="log")
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--max-epochs", type=int, default=15)
    parser.add_argument("--log-dir", default="runs")
    parser.add_argument("--plot", default="loss.png")
    args = parser.parse_args()

    mt.manual_seed(0)
    train, val, test = random_split(datasets.Digits(), [0.7, 0.15, 0.15])
    train_loader = DataLoader(train, batch_size=64, shuffle=True)
    val_loader, test_loader = DataLoader(val, batch_size=256), DataLoader(test, batch_size=256)

    trainer = Trainer(
        max_epochs=args.max_epochs,
        callbacks=[
            EarlyStopping("val/loss", mode="min", patience=4),
            ModelCheckpoint(monitor="val/loss", mode="min"),
            LearningRateMonitor(),
        ],
        logger=TensorBoardLogger(args.log_dir, name="digits"),
        log_every_n_steps=5,
    )
    result = trainer.fit(DigitClassifier(), train_loader, val_loader)
    print(result)

    (metrics,) = trainer.test(result.best, test_loader)
    predicted = mt.cat(trainer.predict(result.best, test_loader))
    labels = mt.tensor([label for _, label in test])
    print_confusion(predicted, labels)
    save_curves(result.history, args.plot)
    print(f"\ntest accuracy {metrics['test/acc']:.4f} with the weights of {result.best}")
    print(f"loss curves in {os.path.abspath(args.plot)}")
    print(f"dashboard: pip install tensorboard && tensorboard --logdir {args.log_dir}")


if __name__ == "__main__":
    main()
