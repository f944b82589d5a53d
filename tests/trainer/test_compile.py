"""`Trainer(compile=True)`: the same run, replayed; and what it says where it cannot."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback, ModelCheckpoint
from minitorch.capture import CaptureWarning
from minitorch.errors import ArgumentError, PitfallWarning, TrainerError
from minitorch.loggers import Logger
from minitorch.nn import functional as F
from minitorch.trainer import TaskModule, Trainer


class Task(TaskModule):
    """Dropout, BatchNorm, a schedule, and two logged values."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3)
        )

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        logits = self.net(x)
        loss = F.cross_entropy(logits, y)
        self.log("loss", loss, on_epoch=True)
        self.log("accuracy", (logits.argmax(1) == y).float().mean(), on_step=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        self.log("val", F.cross_entropy(self.net(batch[0]), batch[1]))

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.Adam(self.parameters(), lr=0.01)
        schedule = mt.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]


class Dictionary(Task):
    """Returns more than the loss."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        logits = self.net(batch[0])
        return {"loss": F.cross_entropy(logits, batch[1]), "logits": logits, "count": 6}


class Ignoring(Task):
    """Some targets do not count, so that the mean is over what the values say."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        y = mt.where(batch[1] == 0, -100, batch[1])
        return F.cross_entropy(self.net(batch[0]), y)


class HandsOn(Task):
    """Passes the number of the batch on."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return 2.0 * super().training_step(batch, batch_idx)


def batches() -> list[tuple[Any, Any]]:
    with mt.random.fork_rng():
        mt.manual_seed(1)
        sizes = (6, 6, 6, 6, 3)
        data = [(mt.randn(n, 4), mt.randint(0, 3, (n,))) for n in sizes]
    data[0][1][0] = 1
    return data


def run(kind: type[Task], compile: bool, **options: Any) -> tuple[Any, Any, Trainer]:
    """History, weights and the Trainer of three epochs."""
    mt.manual_seed(7)
    task = kind()
    trainer = Trainer(
        **{"max_epochs": 3, "log_every_n_steps": 1, "enable_progress_bar": False, **options},
        compile=compile,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = trainer.fit(task, batches(), batches()[:2])
    return result.history, {k: v.tolist() for k, v in task.state_dict().items()}, trainer


@pytest.fixture(autouse=True)
def _seeds() -> Any:
    before = mt.random.state_dict()
    yield
    mt.random.load_state_dict(before)


@pytest.mark.parametrize("kind", [Task, Dictionary, Ignoring, HandsOn])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"accumulate_grad_batches": 2},
        {"accumulate_grad_batches": 3, "gradient_clip_val": 0.1},
        {"precision": "16-mixed"},
        {"precision": "bf16-mixed", "accumulate_grad_batches": 2},
        {"precision": "64", "gradient_clip_val": 0.1, "gradient_clip_algorithm": "value"},
    ],
)
def test_same_run(kind: type[Task], options: dict[str, Any]) -> None:
    history, weights, trainer = run(kind, True, **options)
    assert (history, weights) == run(kind, False, **options)[:2]
    counts = trainer.plan.step.counts  # type: ignore[attr-defined]
    assert counts.breaks == {}
    assert counts.replays >= (1 if kind is Ignoring else 4)


def test_resumed_run_is_the_same(tmp_path: Path) -> None:
    whole = run(Task, False)
    saver = ModelCheckpoint(dirpath=str(tmp_path), save_last=True, save_top_k=0)
    run(Task, True, max_epochs=2, callbacks=saver)
    again = ModelCheckpoint(dirpath=str(tmp_path), save_last=True, save_top_k=0)
    mt.manual_seed(99)
    task = Task()
    trainer = Trainer(
        max_epochs=3, log_every_n_steps=1, compile=True, enable_progress_bar=False, callbacks=again
    )
    trainer.fit(task, batches(), batches()[:2], ckpt_path=saver.last_model_path)
    assert {k: v.tolist() for k, v in task.state_dict().items()} == whole[1]


class Chains(Task):
    """Elementwise work on arrays that are large enough for kernels."""

    def __init__(self) -> None:
        super().__init__()
        self.wide = nn.Linear(4, 4096)
        self.scale = nn.Parameter(mt.ones(4096))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        h = self.wide(batch[0])
        h = h * (self.scale + 1) - 0.5 * h.abs()
        self.log("size", (h * h).mean())
        return super().training_step(batch, batch_idx) + (h * h - h).mean()


@pytest.mark.parametrize(
    "options",
    [
        {"gradient_clip_val": 0.1},
        {"precision": "bf16-mixed", "accumulate_grad_batches": 2},
    ],
)
def test_kernels_of_a_step_keep_the_run_as_it_is(options: dict[str, Any]) -> None:
    pytest.importorskip("numba", reason="without numba there are no kernels")
    history, weights, trainer = run(Chains, True, **options)
    assert (history, weights) == run(Chains, False, **options)[:2]
    captured: Any = trainer.plan.step
    assert captured.counts.breaks == {}
    assert captured.counts.recordings == 2
    fused = [
        call
        for recordings in captured._recordings.values()
        for call in recordings[0]._forwards
        if type(call.body).__name__ == "Chain"
    ]
    assert fused


class Freezes(Callback):
    """Changes what may be trained, and an attribute, between epochs."""

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        if trainer.current_epoch == 1:
            module.net[0].requires_grad_(False)
            module.net[3].p = 0.5


def test_changes_by_callbacks_are_seen() -> None:
    a = run(Task, True, callbacks=Freezes(), max_epochs=4)
    assert a[:2] == run(Task, False, callbacks=Freezes(), max_epochs=4)[:2]
    assert a[2].plan.step.counts.breaks == {}


class UsesIndex(Task):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return super().training_step(batch, batch_idx) * (1 + batch_idx)


class UsesIndexInC(Task):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return super().training_step(batch, 0) * (1 + len(range(batch_idx)))


class UsesEpoch(Task):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return F.cross_entropy(self.net(batch[0]), batch[1]) * (1 + self.current_epoch)


class UsesItem(Task):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss.item())
        return loss


class AsksTrainer(Task):
    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return F.cross_entropy(self.net(batch[0]), batch[1]) / self.trainer.max_epochs


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (UsesIndex, r"batch_idx is another number in every batch, at .*\(1 \+ batch_idx\)"),
        (UsesIndexInC, r"batch_idx is another number in every batch, at .*range\(batch_idx\)"),
        (UsesEpoch, r"current_epoch is another number in other steps, at .*self\.current_epoch"),
        (UsesItem, r'item reads the value of a tensor, at .*self\.log\("loss", loss\.item\(\)\)'),
        (AsksTrainer, r"trainer of the Trainer is asked for.*self\.trainer\.max_epochs"),
    ],
)
def test_breaks_name_the_line(kind: type[Task], text: str) -> None:
    mt.manual_seed(7)
    task = kind()
    trainer = Trainer(max_epochs=2, compile=True, enable_progress_bar=False)
    with pytest.warns(PitfallWarning, match=text) as seen:
        result = trainer.fit(task, batches())
    assert len(seen) == 1
    assert seen[0].filename == __file__
    assert "[compile-breaks-recompiles]" in result.warnings[0]
    told = str(result).splitlines()[-1]
    assert told == "warned of: compile-breaks-recompiles (the texts are in .warnings)"
    strict = Trainer(max_epochs=2, compile=True, checks="strict", enable_progress_bar=False)
    with pytest.raises(TrainerError, match=text):
        strict.fit(kind(), batches())
    silent = Trainer(max_epochs=2, compile=True, checks="off", enable_progress_bar=False)
    with pytest.warns(CaptureWarning, match=text):
        silent.fit(kind(), batches())


class Remembers(Logger):
    """Keeps what it is given."""

    name, version = "remembers", 0

    def __init__(self) -> None:
        self.seen: list[dict[str, float]] = []

    def log_metrics(self, metrics: Any, step: int | None = None) -> None:
        if "compile/breaks" in metrics:
            self.seen.append({**metrics, "step": step})


@pytest.mark.parametrize(("kind", "recordings", "breaks"), [(Task, 2, 0), (AsksTrainer, 0, 1)])
def test_loggers_get_the_counts(kind: Any, recordings: int, breaks: int) -> None:
    logger = Remembers()
    trainer = Trainer(
        max_epochs=2, compile=True, enable_progress_bar=False, logger=logger, checks="off"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CaptureWarning)
        trainer.fit(kind(), batches())
    last = logger.seen[-1]
    assert (last["compile/recordings"], last["compile/breaks"]) == (recordings, breaks)
    assert all(row["step"] <= 10 for row in logger.seen)


class Yields(Task):
    """Gives its loss by yield, under a name."""

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        yield "only", super().training_step(batch, batch_idx)

    def configure_optimizers(self) -> Any:
        return {"only": mt.optim.SGD(self.parameters(), lr=0.1)}


def test_yielded_losses_are_told_to_be_returned() -> None:
    trainer = Trainer(max_epochs=1, compile=True, enable_progress_bar=False)
    with pytest.warns(PitfallWarning, match=r"Yields.training_step, which yields.*as a dict"):
        trainer.fit(Yields(), batches())


def test_anomaly_mode_runs_eagerly() -> None:
    a = run(Task, True, detect_anomaly=True)
    assert a[:2] == run(Task, False, detect_anomaly=True)[:2]
    assert a[2].plan.step.counts.replays == 0


def test_bad_batch_raises_its_own_error() -> None:
    data = batches()
    data[4] = (data[3][0], mt.full((6,), 5))
    trainer = Trainer(max_epochs=1, compile=True, enable_progress_bar=False)
    with pytest.raises(ArgumentError, match="class numbers must be from 0 to 2"):
        trainer.fit(Task(), data)


def test_argument_is_checked() -> None:
    with pytest.raises(ArgumentError, match="compile must be True or False. Got 'max'"):
        Trainer(compile="max").fit(Task(), batches())  # type: ignore[arg-type]


class Weighed(Task):
    """A hyper-parameter changes between epochs."""

    def __init__(self, weight: float = 1.0) -> None:
        super().__init__()
        self.save_hyperparameters()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        return super().training_step(batch, batch_idx) * self.hparams.weight

    def on_train_epoch_end(self) -> None:
        self.hparams.weight = 4.0


def test_a_changed_hyper_parameter_is_seen(tmp_path: Path) -> None:
    found = []
    for compiled in (False, True):
        mt.manual_seed(2)
        task = Weighed()
        batches = [(mt.randn(6, 4), mt.tensor([0, 1, 2, 0, 1, 2])) for _ in range(6)]
        trainer = Trainer(
            max_epochs=2,
            compile=compiled,
            default_root_dir=tmp_path,
            logger=False,
            enable_progress_bar=False,
            enable_checkpointing=False,
        )
        trainer.fit(task, batches)
        found.append([p.tolist() for p in task.parameters()])
    assert found[0] == found[1]
