"""Rollback, SpikeDetection and ReplayBundle."""

from __future__ import annotations

import json
import math
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_tasks import Linear, loader, quiet

import minitorch as mt
from minitorch.callbacks import (
    Callback,
    EMAWeightAveraging,
    ModelCheckpoint,
    ReplayBundle,
    Rollback,
    SpikeDetection,
)
from minitorch.callbacks.spikes import Spikes
from minitorch.errors import ArgumentError, CheckpointError, DivergenceError
from minitorch.io import load_tree
from minitorch.trainer.replay import main, rerun

BATCHES = 10


class Diverges(Linear):
    """Spoils the loss of some batches, counted over all epochs.

    Args:
        bad: What the loss of these batches is multiplied by.
        interval: When the schedule moves.
    """

    def __init__(self, bad: dict[int, float] | None = None, interval: str = "step") -> None:
        super().__init__()
        self.save_hyperparameters()
        self.dropout = mt.nn.Dropout(0.2)
        self.norm = mt.nn.BatchNorm1d(2)
        self.bad, self.interval = bad or {}, interval
        self.seen: list[int] = []

    def forward(self, x: Any) -> Any:
        return self.linear(self.dropout(self.norm(x)))

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        number = self.trainer.position.batches
        self.seen.append(number)
        loss = self.loss(batch) * self.bad.get(number, 1.0)
        self.log("train/loss", loss, on_step=True, on_epoch=True)
        return loss

    def configure_optimizers(self) -> Any:
        optimizer = mt.optim.Adam(self.parameters(), lr=0.01)
        schedule = mt.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": self.interval},
        }


class Weights(Callback):
    """Keeps the weights after each batch."""

    def __init__(self) -> None:
        self.seen: dict[int, np.ndarray] = {}

    def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
        self.seen[trainer.position.batches] = module.linear.weight.detach().numpy().copy()


def fit(task: Any, *callbacks: Any, ckpt: Any = None, **options: Any) -> Any:
    options = {"max_epochs": 2, "log_every_n_steps": 1, **options}
    trainer = quiet(*callbacks, **options)
    result = trainer.fit(task, loader(BATCHES), loader(1), ckpt_path=ckpt)
    return trainer, result


NAN = math.nan


@pytest.mark.parametrize("value", [NAN, math.inf, 1e4])
def test_run_goes_back_to_the_copy_and_on_behind_the_batch(value: float, capsys: Any) -> None:
    mt.manual_seed(3)
    weights = Weights()
    fit(Diverges(), weights)
    mt.manual_seed(3)
    task, seen = Diverges({13: value}), Weights()
    back = Rollback(every_n_steps=4, rtol=5.0)
    with pytest.warns(UserWarning, match="Rollback 1 of 3: from update 13 back to 12, and on b"):
        trainer, result = fit(task, back, seen)
    assert (result.status, result.global_step, result.epochs) == ("completed", 18, 2)
    assert [n for n in task.seen if n == 13] == [13] * (1 if value == 1e4 else 2)  # and diagnosis
    assert sorted(set(task.seen)) == list(range(20))
    for batches in range(1, 14):
        np.testing.assert_array_equal(seen.seen[batches], weights.seen[batches])
    assert 14 not in seen.seen
    assert back.count == 1
    assert result.warnings == tuple(back.failures)
    assert "batch 3 of epoch 1" in back.failures[0]
    assert "Rollback 1 of 3" in capsys.readouterr().out
    assert result.history["rollbacks"] == [(12, 1.0)]
    points = result.history["train/loss_step"]
    assert all(math.isfinite(v) and v < 1e3 for _, v in points)
    (_, first), (_, second) = result.history["train/loss_epoch"]
    assert math.isfinite(first + second)
    assert second < 1e3


@pytest.mark.parametrize("interval", ["step", "epoch"])
def test_weights_optimizer_and_schedule_are_those_of_the_copy(interval: str) -> None:
    """Eight batches, one that diverges: the state is that of six, the epoch's schedule stays."""

    class Looks(Callback):
        def __init__(self) -> None:
            self.states: dict[int, Any] = {}

        def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, idx: int) -> None:
            optimizer = trainer.optimizers[0]
            moments = [np.array(v) for s in optimizer.state.values() for v in s.values()]
            state = [p.detach().numpy().copy() for p in module.state_dict().values()]
            rate = optimizer.param_groups[0]["lr"]
            self.states[trainer.position.batches] = [*state, *moments], rate

    looks = Looks()
    mt.manual_seed(3)
    with pytest.warns(UserWarning, match="from update 18 back to 9"):
        fit(Diverges({18: NAN}, interval), Rollback(every_n_steps=9, rtol=None), looks)
    at, after = looks.states[9], looks.states[19]
    for first, second in zip(at[0], after[0], strict=True):
        np.testing.assert_array_equal(first, second)
    rates = {"step": 0.01 * 0.9**9, "epoch": 0.009}
    assert after[1] == pytest.approx(rates[interval])


def test_losses_of_the_older_weights_are_no_jump() -> None:
    """Back at the first weights, losses are ten times the mean of the last ones, and stay so."""

    class Falls(Diverges):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            scale = 0.5 ** min(self.trainer.global_step, 8)
            return super().training_step(batch, batch_idx) * scale

    with pytest.warns(UserWarning, match="Rollback 1 of 1: from update 14 back to 0"):
        _, result = fit(Falls({14: NAN}), Rollback(1, 30, window=3, rtol=9.0))
    assert (result.status, result.global_step) == ("completed", 5)


def test_copy_is_good_only_after_the_next_step() -> None:
    """The update before a spike may have caused it: its copy is thrown away."""
    with pytest.warns(UserWarning, match="from update 12 back to 8"):
        fit(Diverges({12: NAN}), Rollback(every_n_steps=4, rtol=None))


@pytest.mark.parametrize("bad", [3, 13, 15])
@pytest.mark.parametrize("every", [4, 10])
@pytest.mark.parametrize("by_epoch", [False, True])
def test_averages_go_back_with_the_weights(bad: int, every: int, by_epoch: bool) -> None:
    class Trace(Callback):
        def __init__(self) -> None:
            self.seen: dict[int, np.ndarray] = {}

        def on_train_batch_end(self, trainer: Any, module: Any, *args: Any) -> None:
            if not by_epoch or trainer.is_last_batch:
                key = trainer.current_epoch if by_epoch else trainer.global_step
                self.seen[key] = module.linear.weight.detach().numpy().copy()

    rhythm = {"update_every_n_steps": 0, "update_starting_at_epoch": 0} if by_epoch else {}
    mt.manual_seed(3)
    task, trace = Diverges({bad: NAN}), Trace()
    average = EMAWeightAveraging(decay=0.97, **rhythm)
    with pytest.warns(UserWarning, match="Rollback 1 of 3"):
        fit(task, Rollback(every_n_steps=every, rtol=None), average, trace, max_epochs=3)
    expected, *later = [trace.seen[key] for key in sorted(trace.seen)]
    for weight in later:
        expected = 0.97 * expected + 0.03 * weight
    assert average.state_dict()["count"] == 1 + len(later)
    np.testing.assert_allclose(task.linear.weight.detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("limit", [0, 2])
def test_error_ends_the_run_when_all_are_used(limit: int) -> None:
    task = Diverges(dict.fromkeys(range(5, 9), NAN))
    back = Rollback(limit, every_n_steps=2, rtol=None)
    told = pytest.warns(UserWarning, match=r"Rollback [12] of 2") if limit else nullcontext()
    with told, pytest.raises(DivergenceError, match="the loss must be finite") as caught:
        fit(task, back)
    assert f"Rollback: {limit} of {limit} are used." in caught.value.__notes__
    assert back.count == limit
    state = task.trainer.position
    assert (state.batch, state.window) == (5 + limit, 0)


def test_gradients_that_are_not_finite_count_and_manual_optimization_too() -> None:
    class Manual(Diverges):
        automatic_optimization = False

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            optimizer = self.optimizers()
            optimizer.zero_grad()
            loss = self.loss(batch)
            self.manual_backward(loss * self.bad.get(self.trainer.position.batches, 1.0))
            optimizer.step()

        def configure_optimizers(self) -> Any:
            return mt.optim.SGD(self.parameters(), lr=0.01)

    class Gradients(Diverges):
        def on_after_backward(self) -> None:
            if self.trainer.position.batches in self.bad:
                self.linear.weight.grad.fill_(NAN)

    for kind in (Manual, Gradients):
        for clip in (None, 1.0) if kind is Gradients else (None,):
            task = kind({7: NAN if kind is Manual else 1.0})
            with pytest.warns(UserWarning, match="back to 4, and on behind batch 7"):
                _, result = fit(task, Rollback(3, 4, rtol=None), gradient_clip_val=clip)
            assert (result.status, result.global_step) == ("completed", 16)


@pytest.mark.parametrize("window", [2, 3])
def test_whole_window_is_left_out(window: int) -> None:
    task = Diverges({13: NAN})
    with pytest.warns(UserWarning, match="Rollback 1 of 3"):
        _, result = fit(task, Rollback(3, 1, rtol=None), accumulate_grad_batches=window)
    updates = {2: 5 + 1 + 3, 3: 4 + 2}
    assert (result.epochs, result.global_step) == (2, updates[window])


@pytest.mark.parametrize("cut", [3, 11, 12, 13, 14, 17])
def test_resumed_run_goes_back_to_the_same_state(cut: int, tmp_path: Path) -> None:
    class Save(Callback):
        def on_train_batch_end(self, trainer: Any, *args: Any) -> None:
            if trainer.position.batches == cut + (cut > 13):
                trainer.save_checkpoint(tmp_path / "x.ckpt")

    def back() -> Rollback:
        return Rollback(every_n_steps=5, rtol=None)

    mt.manual_seed(3)
    whole = Diverges({13: NAN})
    with pytest.warns(UserWarning, match="Rollback"):
        _, expected = fit(whole, back(), Save())
    again, callback = Diverges({13: NAN}), back()
    if cut > 13:
        _, result = fit(again, callback, ckpt=tmp_path / "x.ckpt")
    else:
        with pytest.warns(UserWarning, match="Rollback"):
            _, result = fit(again, callback, ckpt=tmp_path / "x.ckpt")
    assert result.history == expected.history
    assert callback.count == 1
    for name, value in whole.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name].numpy(), value.numpy())


def test_checkpoints_live_with_it(tmp_path: Path) -> None:
    keep = ModelCheckpoint(tmp_path, monitor="val/loss", mode="min", save_last=True)
    with pytest.warns(UserWarning, match="Rollback"):
        _, result = fit(Diverges({3: NAN, 9: NAN, 15: NAN}), Rollback(3, 2, rtol=None), keep)
    assert result.epochs == 2
    assert load_tree(result.last)["global_step"] == result.global_step


def test_half_precision_takes_its_loss_scale_back() -> None:
    with pytest.warns(UserWarning, match="Rollback 1 of 3"):
        trainer, result = fit(Diverges({7: NAN}), Rollback(3, 4, rtol=None), precision="16-mixed")
    assert result.status == "completed"
    assert trainer.precision.scaler.get_scale() > 1


SPIKES: dict[str, tuple[dict[str, Any], list[float], list[int]]] = {
    "relative": ({"rtol": 2.0}, [1, 1, 1, 2.9, 6.0, 1], [4]),
    "absolute": ({"rtol": None, "atol": 0.5}, [1, 1, 1.4, 1.7], [3]),
    "both": ({"rtol": 0.1, "atol": 5.0}, [10, 10, 14, 17], [3]),
    "better is none": ({"rtol": 0.1}, [10, 1, 0.1], []),
    "max": ({"mode": "max", "rtol": 0.5}, [4, 4, 5, 1], [3]),
    "warmup": ({"warmup": 3}, [1, 100, 1, 500], [3]),
    "window": ({"window": 2, "rtol": 2.0}, [100, 1, 1, 4], [3]),
    "nan": ({}, [1, NAN, 1, math.inf], [1, 3]),
    "nan allowed": ({"finite_only": False}, [1, NAN, 1, 4], [3]),
}


@pytest.mark.parametrize("case", SPIKES)
def test_what_is_a_spike(case: str) -> None:
    options, losses, expected = SPIKES[case]
    given: dict[str, Any] = {"mode": "min", "window": 10, "warmup": 1, "atol": None, "rtol": 2.0}
    spikes = Spikes("Test", **{**given, "finite_only": True, **options})
    for number, loss in enumerate(losses):
        spikes.begin_batch()
        assert spikes.is_spike(loss) == (number in expected)


def test_several_losses_of_a_batch_are_kept_apart() -> None:
    options: dict[str, Any] = {"mode": "min", "window": 9, "warmup": 1, "atol": None, "rtol": 2.0}
    spikes = Spikes("Test", **options, finite_only=True)
    for _ in range(3):
        spikes.begin_batch()
        assert not spikes.is_spike(1.0)
        assert not spikes.is_spike(100.0)
    spikes.begin_batch()
    assert spikes.is_spike(50.0)
    assert spikes.mean == 1.0
    again = Spikes("Test", **options, finite_only=True)
    again.load_state_dict(spikes.state_dict())
    again.begin_batch()
    assert again.is_spike(50.0)
    assert not again.is_spike(110.0)


def test_spike_detection_ends_the_run_and_names_the_batches(tmp_path: Path) -> None:
    task = Diverges({13: 1e5})
    with pytest.raises(
        DivergenceError, match=r"must not jump. Got .* at epoch 1, batch 3"
    ) as caught:
        fit(task, SpikeDetection(rtol=5.0, warmup=3, exclude_batches_path=tmp_path / "a"))
    path = tmp_path / "a" / "skip_batches.json"
    assert json.loads(path.read_text()) == [2, 3]
    assert caught.value.__notes__ == [f"SpikeDetection wrote the batches to leave out to {path}"]
    assert task.trainer.global_step == 13


def test_spike_detection_begins_each_fit_without_batches(tmp_path: Path) -> None:
    detection = SpikeDetection(rtol=5.0, warmup=3, exclude_batches_path=tmp_path)
    for bad in (13, 15):
        with pytest.raises(DivergenceError):
            fit(Diverges({bad: 1e5}), detection)
        first = bad % BATCHES - 1
        assert json.loads((tmp_path / "skip_batches.json").read_text()) == [first, first + 1]
        assert len(list(tmp_path.iterdir())) == 1


def test_bundles_of_two_runs_lie_apart(tmp_path: Path) -> None:
    bundle = ReplayBundle()
    for name in ("first", "second"):
        with pytest.raises(DivergenceError):
            fit(Diverges({3: NAN}), bundle, default_root_dir=tmp_path / name)
        [path] = bundle.paths
        assert Path(path).is_relative_to(tmp_path / name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Rollback(-1), "Rollback: max_rollbacks must be an integer ≥ 0"),
        (lambda: Rollback(every_n_steps=0), "Rollback: every_n_steps must be an integer ≥ 1"),
        (lambda: SpikeDetection("up"), 'SpikeDetection: mode must be "min" or "max"'),
        (lambda: SpikeDetection(window=0), "SpikeDetection: window must be an integer ≥ 1"),
        (lambda: SpikeDetection(rtol=-1), "SpikeDetection: rtol must be a number ≥ 0 or None"),
        (lambda: ReplayBundle(max_bundles=0), "ReplayBundle: max_bundles must be an integer ≥ 1"),
    ],
)
def test_wrong_arguments(make: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        fit(Diverges(), make())


# Replay bundles.


@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("precision", ["32", "16-mixed", "bf16-mixed"])
def test_bundle_runs_the_step_again_with_the_same_numbers(
    window: int, precision: str, tmp_path: Path, capsys: Any
) -> None:
    class Fails(Diverges):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            loss = super().training_step(batch, batch_idx)
            if self.trainer.position.batches == 14:
                raise LookupError(f"loss {float(loss.detach()):.9g}")
            return loss

    options = {"accumulate_grad_batches": window, "precision": precision}
    bundle = ReplayBundle(tmp_path)
    with pytest.raises(LookupError) as caught:
        fit(Fails(), bundle, **options)
    (path,) = bundle.paths
    assert path.endswith("failing-step-epoch=1-batch=4.ckpt")
    assert caught.value.__notes__ == [f"ReplayBundle wrote {path}"]
    mt.manual_seed(99)
    error = rerun(path, Fails)
    assert str(error) == str(caught.value)
    assert f"recorded: LookupError: {caught.value}" in capsys.readouterr().out


def test_bundle_has_the_trained_weights_where_an_average_is_kept(tmp_path: Path) -> None:
    weights, bundle = Weights(), ReplayBundle(tmp_path)
    with pytest.raises(DivergenceError):
        fit(Diverges({13: NAN}), EMAWeightAveraging(), bundle, weights)
    held = load_tree(bundle.paths[0])["state_dict"]["linear.weight"].numpy()
    np.testing.assert_array_equal(held, weights.seen[13])


def test_bundle_of_a_nan_names_the_operation(tmp_path: Path, capsys: Any) -> None:
    bundle = ReplayBundle(tmp_path)
    with pytest.warns(UserWarning, match="Rollback"):
        fit(Diverges({13: NAN}), Rollback(rtol=None), bundle)
    (path,) = bundle.paths
    assert load_tree(path)["replay"]["error"].startswith("DivergenceError: training_step: the loss")
    code = main([path, "--task", f"{__name__}:Diverges"])
    out = capsys.readouterr().out
    assert code == 1
    assert "again:" in out
    assert main([path, "--task", f"{__name__}:healthy"]) == 0
    out = capsys.readouterr().out
    assert "batch 3: loss " in out
    assert "largest gradient norms: " in out
    assert "ran to its end without an error" in out


def healthy() -> Diverges:
    """The task with its mistake mended."""
    return Diverges()


def test_bundles_are_few_and_only_of_steps(tmp_path: Path) -> None:
    bundle = ReplayBundle(tmp_path / "few", max_bundles=2)
    with pytest.warns(UserWarning, match="Rollback"):
        fit(Diverges(dict.fromkeys((5, 8, 12), NAN)), Rollback(rtol=None), bundle)
    assert len(bundle.paths) == 2

    class Elsewhere(Callback):
        def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
            raise LookupError

    bundle = ReplayBundle(tmp_path / "none")
    with pytest.raises(LookupError):
        fit(Diverges(), bundle, Elsewhere())
    assert bundle.paths == []
    assert not (tmp_path / "none").exists()


def test_batch_that_no_file_holds_is_named(tmp_path: Path) -> None:
    class Odd(Diverges):
        def loss(self, batch: Any) -> Any:
            return super().loss(batch[0])

    batches = [([one, object()]) for one in loader(3)]
    with (
        pytest.warns(UserWarning, match=r"could not be kept: .*object at 'replay.batches.0.1'"),
        pytest.raises(DivergenceError),
    ):
        quiet(ReplayBundle(tmp_path), max_epochs=1).fit(Odd({1: NAN}), batches)


def test_replay_needs_a_bundle_and_a_task(tmp_path: Path, capsys: Any) -> None:
    trainer, _ = fit(Diverges())
    trainer.save_checkpoint(tmp_path / "x.ckpt")
    with pytest.raises(CheckpointError, match=r"replay: a file of ReplayBundle is needed. Got .*x"):
        rerun(tmp_path / "x.ckpt", Diverges)
    bundle = ReplayBundle(tmp_path)
    with pytest.raises(DivergenceError):
        fit(Diverges({13: NAN}), bundle)
    with pytest.raises(ArgumentError, match=r"replay: task must be a TaskModule.* Got int"):
        rerun(bundle.paths[0], lambda: 3)
    with pytest.raises(SystemExit):
        main([bundle.paths[0], "--task", "module"])
    assert "--task must be package.module:name. Got 'module'" in capsys.readouterr().err
