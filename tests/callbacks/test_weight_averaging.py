"""Averaged weights: their values, what validation and files see, and exact resuming."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from averaging_tasks import Normed, assert_equal, check_resumes, values
from scripted_tasks import Linear, Spy, fit, loader, quiet

import minitorch as mt
from minitorch import nn, optim
from minitorch.callbacks import (
    EMAWeightAveraging,
    ModelCheckpoint,
    StochasticWeightAveraging,
    WeightAveraging,
)
from minitorch.errors import ArgumentError, TrainerError
from minitorch.io import load_tree
from minitorch.optim.swa_utils import get_ema_multi_avg_fn


class Trace(Spy):
    """The weight after every update."""

    def __init__(self) -> None:
        super().__init__(
            "on_train_batch_end", lambda t: np.array(t.module.linear.weight.detach().numpy())
        )


def weight_of(task: Any) -> np.ndarray:
    return np.array(task.linear.weight.detach().numpy())


def ema(trace: list[Any], decay: float) -> Any:
    average = trace[0]
    for weight in trace[1:]:
        average = decay * average + (1 - decay) * weight
    return average


RULES: dict[str, tuple[Any, Any]] = {
    "mean": (WeightAveraging, lambda seen: np.mean(seen, axis=0)),
    "ema": (lambda: EMAWeightAveraging(decay=0.7), lambda seen: ema(seen, 0.7)),
    "every third": (
        lambda: EMAWeightAveraging(decay=0.7, update_every_n_steps=3),
        lambda seen: ema([seen[0], seen[3], seen[6]], 0.7),
    ),
    "from a step": (
        lambda: EMAWeightAveraging(decay=0.7, update_starting_at_step=5),
        lambda seen: ema(seen[5:], 0.7),
    ),
    "epochs only": (
        lambda: EMAWeightAveraging(decay=0.7, update_every_n_steps=0, update_starting_at_epoch=0),
        lambda seen: ema([seen[3], seen[7]], 0.7),
    ),
    "own function": (
        lambda: WeightAveraging(avg_fn=lambda average, weight, n: (average + weight) / 2),
        lambda seen: ema(seen, 0.5),
    ),
    "swa": (
        lambda: StochasticWeightAveraging(0.01, swa_epoch_start=1),
        lambda seen: np.mean([seen[3], seen[7]], axis=0),
    ),
}


@pytest.mark.parametrize("case", RULES)
def test_the_module_ends_with_the_average(case: str) -> None:
    make, rule = RULES[case]
    trace, task = Trace(), Linear()
    fit(task, make(), trace, max_epochs=2)
    np.testing.assert_allclose(weight_of(task), rule(trace.seen), rtol=1e-5)
    assert not np.allclose(weight_of(task), trace.seen[-1], rtol=1e-4)


@pytest.mark.parametrize("case", ["mean", "ema", "swa"])
def test_training_itself_does_not_change(case: str) -> None:
    traces = []
    for callbacks in ([], [RULES[case][0]()]):
        mt.manual_seed(3)
        trace = Trace()
        fit(Normed(), *callbacks, trace, max_epochs=1)
        traces.append(trace.seen)
    np.testing.assert_array_equal(*traces)


def test_validation_sees_the_average_and_training_goes_on() -> None:
    trace, task = Trace(), Linear()
    inside = Spy("on_validation_batch_end", lambda t: weight_of(t.module))
    after = Spy("on_train_epoch_end", lambda t: weight_of(t.module))
    average = WeightAveraging()
    fit(task, average, trace, inside, after, max_epochs=2, num_sanity_val_steps=1)
    np.testing.assert_allclose(inside.seen[1], np.mean(trace.seen[:4], axis=0), rtol=1e-5)
    np.testing.assert_array_equal(after.seen, trace.seen[3::4])
    np.testing.assert_allclose(inside.seen[2], np.mean(trace.seen, axis=0), rtol=1e-5)


def test_before_the_first_average_validation_has_the_weights_themselves() -> None:
    trace = Trace()
    inside = Spy("on_validation_batch_end", lambda t: weight_of(t.module))
    late = EMAWeightAveraging(decay=0.5, update_starting_at_step=6)
    fit(Linear(), late, trace, inside, max_epochs=2)
    np.testing.assert_array_equal(inside.seen[1], trace.seen[3])


RESUMED: dict[str, Any] = {
    "mean": WeightAveraging,
    "ema": lambda: EMAWeightAveraging(decay=0.8),
    "ema, estimated": lambda: EMAWeightAveraging(decay=0.8, buffers="estimate"),
    "ema, copied": lambda: EMAWeightAveraging(decay=0.8, buffers="copy"),
    "swa": lambda: StochasticWeightAveraging(0.02, swa_epoch_start=2, annealing_epochs=2),
    "swa, linear": lambda: StochasticWeightAveraging(
        [0.02], 0.5, annealing_epochs=2, annealing_strategy="linear", device=None
    ),
}


@pytest.mark.parametrize("case", RESUMED)
def test_resumed_equals_uninterrupted(case: str, tmp_path: Path) -> None:
    check_resumes(Normed, RESUMED[case], tmp_path, (1, 6, 8, 13))


@pytest.mark.parametrize("options", [{"val_check_interval": 2}, {"accumulate_grad_batches": 3}])
def test_resumed_equals_uninterrupted_with(options: dict[str, Any], tmp_path: Path) -> None:
    check_resumes(Normed, RESUMED["ema"], tmp_path, (2, 5), **options)


def test_a_finished_run_goes_on_from_its_last_file(tmp_path: Path) -> None:
    mt.manual_seed(1)
    whole = Normed()
    fit(whole, EMAWeightAveraging(decay=0.8), max_epochs=3)
    mt.manual_seed(1)
    keep = ModelCheckpoint(tmp_path, save_last=True)
    fit(Normed(), EMAWeightAveraging(decay=0.8), keep, max_epochs=2)
    again = Normed()
    keep = ModelCheckpoint(tmp_path / "again", save_last=True)
    fit(again, EMAWeightAveraging(decay=0.8), keep, ckpt=tmp_path / "last.ckpt", max_epochs=3)
    assert_equal(values(again), values(whole))


@pytest.mark.parametrize("make", [RESUMED["ema, estimated"], RESUMED["swa"]])
def test_every_file_of_a_validation_resumes_exactly(make: Any, tmp_path: Path) -> None:
    options: dict[str, Any] = {"max_epochs": 3, "val_check_interval": 2}

    def keep(folder: str) -> ModelCheckpoint:
        best = {"monitor": "val/loss", "mode": "min", "save_top_k": -1}
        return ModelCheckpoint(tmp_path / folder, "{step}", **best)

    mt.manual_seed(1)
    task = Normed()
    result = fit(task, make(), keep("whole"), **options)
    files = sorted((tmp_path / "whole").glob("step*.ckpt"))
    assert len(files) == 6
    for path in files[:-1]:
        again = Normed()
        resumed = fit(again, make(), keep(path.stem), ckpt=path, **options)
        assert resumed.history == result.history
        assert_equal(values(again), values(task))


def test_files_hold_both(tmp_path: Path) -> None:
    trace, task = Trace(), Linear()
    keep = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=3, save_top_k=-1)
    trainer = quiet(WeightAveraging(), trace, keep, max_epochs=1)
    trainer.fit(task, loader(), loader(1))
    tree = load_tree(tmp_path / "step=3.ckpt")
    average = np.mean(trace.seen[:3], axis=0)
    np.testing.assert_allclose(tree["state_dict"]["linear.weight"].numpy(), average, rtol=1e-5)
    current = tree["current_model_state"]["linear.weight"].numpy()
    np.testing.assert_array_equal(current, trace.seen[2])
    other = Linear.load_from_checkpoint(tmp_path / "step=3.ckpt")
    np.testing.assert_allclose(weight_of(other), average, rtol=1e-5)
    trainer.test(task, loader(1), ckpt_path=str(tmp_path / "step=3.ckpt"), verbose=False)
    np.testing.assert_allclose(weight_of(task), average, rtol=1e-5)
    trainer.save_checkpoint(tmp_path / "w.ckpt", weights_only=True)
    assert "current_model_state" not in load_tree(tmp_path / "w.ckpt")


def test_ties_stay_ties_in_files(tmp_path: Path) -> None:
    class Tied(Linear):
        def __init__(self) -> None:
            super().__init__()
            self.other = nn.Linear(2, 1)
            self.tie("other.weight", "linear.weight")

        def forward(self, x: Any) -> Any:
            return self.linear(x) + self.other(x)

    keep = ModelCheckpoint(tmp_path, "{step}", every_n_train_steps=2)
    fit(Tied(), EMAWeightAveraging(decay=0.5), keep, max_epochs=1)
    state = load_tree(keep.last_model_path)["state_dict"]
    np.testing.assert_array_equal(*(state[f"{n}.weight"].numpy() for n in ("linear", "other")))
    check_resumes(Tied, RESUMED["ema"], tmp_path, (3,))


def statistics(task: Any) -> np.ndarray:
    return np.array(task.norm.running_mean.numpy())


class Drifting(Normed):
    """The layer ahead of the normalisation is trained, so that its statistics move."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 2)

    def forward(self, x: Any) -> Any:
        return super().forward(self.first(x))

    def configure_optimizers(self) -> Any:
        return optim.SGD(self.parameters(), lr=0.1)


def test_estimated_statistics_belong_to_the_average() -> None:
    task = Drifting()
    fit(task, EMAWeightAveraging(decay=0.9, buffers="estimate"), max_epochs=3)
    x = mt.stack([batch[0] for batch in loader()])
    with mt.no_grad():
        expected = np.mean([task.first(one).mean(0).numpy() for one in x], axis=0)
    np.testing.assert_allclose(statistics(task), expected, rtol=1e-4, atol=1e-6)


def test_estimates_leave_no_trace() -> None:
    class Noisy(Drifting):
        steps = 0

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            self.steps += 1
            self.log("train/mean", self.loss(batch), on_step=False, on_epoch=True)
            return super().training_step(batch, batch_idx)

    results = []
    for policy in ("copy", "estimate"):
        mt.manual_seed(4)
        task = Noisy()
        result = fit(task, WeightAveraging(buffers=policy), max_epochs=2)
        results.append({name: result.history[name] for name in ("train/mean",)})
    assert results[0] == results[1]
    assert task.steps == 4 * 2 + 4 * 2  # two more passes: validations; the end has the last one's
    assert not task.drop.training or task.training


def test_estimates_read_several_loaders_as_training_does() -> None:
    class Two(Drifting):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            assert sorted(batch) == ["a", "b"]
            return super().training_step(batch["a"], batch_idx)

    task, alone = Two(), Drifting()
    alone.load_state_dict(task.state_dict())
    data = {"a": loader(), "b": loader(2)}
    options = {"max_epochs": 2, "log_every_n_steps": 1}
    mt.manual_seed(5)
    quiet(WeightAveraging(buffers="estimate"), **options).fit(task, data, loader(1))
    mt.manual_seed(5)
    fit(alone, WeightAveraging(buffers="estimate"), **options)
    np.testing.assert_array_equal(statistics(task), statistics(alone))


def test_fewer_batches_or_an_own_forward_for_an_estimate() -> None:
    seen: list[Any] = []

    def forward(module: Any, batch: Any) -> Any:
        seen.append(type(module).__name__)
        return module(batch[0])

    fit(
        Drifting(),
        WeightAveraging(buffers="estimate", estimate_batches=2, forward=forward),
        max_epochs=1,
    )
    assert seen == ["Drifting"] * 2


def test_frozen_statistics_rest() -> None:
    from minitorch.trainer import freeze

    class Frozen(Drifting):
        def __init__(self) -> None:
            super().__init__()
            freeze(self.norm)

    task = Frozen()
    fit(task, StochasticWeightAveraging(0.05, swa_epoch_start=1), max_epochs=2)
    np.testing.assert_array_equal(statistics(task), 0.0)


def test_an_exception_leaves_the_trained_weights() -> None:
    class Fails(Linear):
        def validation_step(self, batch: Any, batch_idx: int) -> None:
            if not self.trainer.sanity_checking:
                raise ZeroDivisionError

    task, trace = Fails(), Trace()
    with pytest.raises(ZeroDivisionError):
        fit(task, WeightAveraging(), trace, max_epochs=1)
    np.testing.assert_array_equal(weight_of(task), trace.seen[-1])


def test_swa_drives_the_rate() -> None:
    class Task(Linear):
        def configure_optimizers(self) -> Any:
            optimizer = optim.SGD(self.parameters(), lr=0.1)
            return [optimizer], [optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]

    rates = Spy("on_train_batch_start", lambda t: t.optimizers[0].param_groups[0]["lr"])
    swa = StochasticWeightAveraging(
        0.01, swa_epoch_start=3, annealing_epochs=2, annealing_strategy="linear"
    )
    fit(Task(), swa, rates, max_epochs=6)
    assert rates.seen[::4] == pytest.approx([0.1, 0.05, 0.025, 0.0175, 0.01, 0.01])


WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "buffers": (
        lambda: [WeightAveraging(buffers="keep")],
        ArgumentError,
        r'WeightAveraging: buffers must be "average", "estimate" or "copy". Got \'keep\'',
    ),
    "functions": (
        lambda: [WeightAveraging(avg_fn=max, multi_avg_fn=max)],
        ArgumentError,
        "give avg_fn or multi_avg_fn. Got both",
    ),
    "batches": (
        lambda: [WeightAveraging(estimate_batches=0)],
        ArgumentError,
        "estimate_batches must be an integer ≥ 1 or None. Got 0",
    ),
    "two": (
        lambda: [WeightAveraging(), EMAWeightAveraging()],
        ArgumentError,
        "one average is validated and saved. Got WeightAveraging, EMAWeightAveraging",
    ),
    "decay": (
        lambda: [EMAWeightAveraging(decay=2)],
        ArgumentError,
        "decay must be a number from 0 to 1. Got 2",
    ),
    "every": (
        lambda: [EMAWeightAveraging(update_every_n_steps=-1)],
        ArgumentError,
        "update_every_n_steps must be an integer ≥ 0. Got -1",
    ),
    "start": (
        lambda: [StochasticWeightAveraging(0.1, swa_epoch_start=0)],
        ArgumentError,
        "swa_epoch_start must be an integer ≥ 1 or a share from 0.0 to 1.0. Got 0",
    ),
    "rate": (
        lambda: [StochasticWeightAveraging(-0.1)],
        ArgumentError,
        "swa_lrs must be a rate > 0, or a list of one for each group. Got -0.1",
    ),
    "annealing": (
        lambda: [StochasticWeightAveraging(0.1, annealing_epochs=-1)],
        ArgumentError,
        "annealing_epochs must be an integer ≥ 0. Got -1",
    ),
    "strategy": (
        lambda: [StochasticWeightAveraging(0.1, annealing_strategy="step")],
        ArgumentError,
        'annealing_strategy must be "cos" or "linear". Got \'step\'',
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_refused_when_a_fit_starts(case: str) -> None:
    make, kind, message = WRONG[case]
    with pytest.raises(kind, match=message):
        fit(Linear(), *make(), max_epochs=1)


def test_a_share_needs_a_number_of_epochs() -> None:
    with pytest.raises(ArgumentError, match="a share of the epochs needs max_epochs"):
        fit(Linear(), StochasticWeightAveraging(0.1), max_epochs=-1, max_steps=3)


class Manual(Normed):
    automatic_optimization = False

    def training_step(self, batch: Any, batch_idx: int) -> None:
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(self.loss(batch))
        optimizer.step()


def test_estimates_with_manual_optimization_need_a_forward() -> None:
    with pytest.raises(ArgumentError, match="runs batches without updates. Got manual optim"):
        fit(Manual(), WeightAveraging(buffers="estimate"), max_epochs=1)
    forward = lambda module, batch: module(batch[0])  # noqa: E731
    fit(Manual(), WeightAveraging(buffers="estimate", forward=forward), max_epochs=1)


def test_swa_has_one_optimizer() -> None:
    class Two(Manual):
        def configure_optimizers(self) -> Any:
            parts = self.linear, self.norm
            return [optim.SGD(part.parameters(), lr=0.1) for part in parts]

        def optimizers(self) -> Any:
            return super().optimizers()[0]

    with pytest.raises(TrainerError, match="the rate of one optimizer.*Got 2 and 0"):
        fit(Two(), StochasticWeightAveraging(0.1), max_epochs=1)


def test_same_averages_on_a_device(pretend_gpu: ModuleType) -> None:
    found = []
    for where in ("cpu", "gpu"):
        mt.manual_seed(1)
        task = Normed()
        average = StochasticWeightAveraging(0.05, swa_epoch_start=1, device=None)
        fit(task, average, accelerator=where, max_epochs=2)
        found.append({n: v.detach().cpu().numpy() for n, v in task.state_dict().items()})
    for name, value in found[0].items():
        np.testing.assert_allclose(found[1][name], value, rtol=1e-4, atol=1e-6, err_msg=name)


def test_same_average_as_pytorch() -> None:
    """The average that PyTorch takes of the same weights, update by update."""
    torch = pytest.importorskip("torch")
    swa_utils = pytest.importorskip("torch.optim.swa_utils")
    trace, task = Trace(), Linear()
    fit(task, EMAWeightAveraging(decay=0.9), trace, max_epochs=2)
    theirs = torch.nn.Linear(2, 1)
    average = swa_utils.AveragedModel(theirs, avg_fn=swa_utils.get_ema_avg_fn(0.9))
    for weight in trace.seen:
        theirs.weight.data = torch.from_numpy(weight)
        average.update_parameters(theirs)
    np.testing.assert_allclose(weight_of(task), average.module.weight.detach().numpy(), rtol=1e-5)


def test_averages_of_half_precision_are_kept_in_single() -> None:
    from minitorch.callbacks.averages import Averages

    module, averages = Linear().bfloat16(), Averages(multi_avg_fn=get_ema_multi_avg_fn(0.999))
    nn.init.constant_(module.linear.weight, 0.0)
    averages.update(module)
    nn.init.constant_(module.linear.weight, 1.0)
    for _ in range(100):
        averages.update(module)
    expected = 1 - 0.999**100
    found = averages.values["linear.weight"]
    assert found.dtype is mt.float32
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-4)
    averages.enter(module)
    assert module.linear.weight.dtype is mt.bfloat16
    np.testing.assert_allclose(module.linear.weight.float().detach().numpy(), expected, rtol=1e-2)
    averages.leave(module)
    assert float(module.linear.weight.detach().float().min()) == 1.0
    np.testing.assert_allclose(averages.values["linear.weight"].numpy(), expected, rtol=1e-4)
