"""A batch that does not fit runs in parts, and nobody can tell from the numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_named_optimizers import EagerTogether
from toy_tasks import Regression, arrays, fit, quiet, weights

import minitorch as mt
from minitorch import nn
from minitorch.callbacks import Callback
from minitorch.errors import ArgumentError

FITS = 4


class Big(Regression):
    """Dropout and momentum; runs out of memory above 4 samples, in `place`."""

    place = "forward"
    limit = FITS

    def __init__(self) -> None:
        mt.manual_seed(5)
        super().__init__(dropout=0.4)
        self.runs: list[int] = []

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        size = len(batch[0])
        self.runs.append(size)
        mt.rand(3)
        loss = super().training_step(batch, batch_idx)
        if size > self.limit:
            if self.place == "forward":
                raise MemoryError("no room")
            self.linear.weight.register_hook(self.fail)
        return {"loss": 0.01 * loss, "size": mt.tensor([float(size)])}

    def fail(self, gradient: Any) -> Any:
        self.linear.weight._hooks.clear()
        raise MemoryError

    def on_before_backward(self, loss: Any) -> None:
        if len(self.trainer.current_batch.data[0]) > self.limit and self.place == "half of it":
            self.linear.bias.grad = mt.ones(1)  # what a backward that fails may leave


def batches(sizes: list[int]) -> list[Any]:
    x, y = arrays(sum(sizes))
    ends = np.cumsum(sizes)
    return [(x[e - n : e], y[e - n : e]) for e, n in zip(ends, sizes, strict=True)]


class FromTheStart(Callback):
    """Splits from the start: what a batch that did not fit must be equal to."""

    def setup(self, trainer: Any, module: Any, stage: str) -> None:
        trainer.micro_batches.samples = FITS


def run(task: Any, data: Any, *callbacks: Any, **options: Any) -> Any:
    options = {"max_epochs": 2, "on_out_of_memory": "split", **options}
    result = fit(task, data, callbacks=list(callbacks), **options)
    return result, weights(task)


@pytest.mark.parametrize("place", ["forward", "backward", "half of it"])
@pytest.mark.parametrize("window", [1, 3])
@pytest.mark.parametrize("precision", ["32", "16-mixed"])
def test_equal_to_a_run_that_was_split_from_the_start(
    place: str, window: int, precision: str, capsys: Any
) -> None:
    options: dict[str, Any] = {"accumulate_grad_batches": window, "precision": precision}
    data = batches([3, 2, 8, 7, 4])
    task = Big()
    task.place = place
    result, ours = run(task, data, **options)
    assert task.runs == [3, 2, 8, 4, 4, 4, 3, 4] + [3, 2, 4, 4, 4, 3, 4]
    split = Big()
    expected, right = run(split, data, FromTheStart(), **options)
    assert split.runs == [3, 2, 4, 4, 4, 3, 4] * 2
    for name, value in ours.items():
        np.testing.assert_array_equal(value, right[name], err_msg=name)
    assert result.history == expected.history
    assert expected.warnings == ()
    (told,) = result.warnings
    assert "a batch of 8 samples ran out of memory (MemoryError" in told
    assert "parts of 4" in told
    assert capsys.readouterr().out.count("ran out of memory") == 1


@pytest.mark.parametrize("window", [1, 2])
def test_gradients_are_those_of_the_whole_batch(window: int) -> None:
    class Plain(Big):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            output = super().training_step(batch, batch_idx)
            return {**output, "loss": self.loss(batch)}  # without dropout

        def forward(self, x: Any) -> Any:
            return self.linear(x)

    class Roomy(Plain):
        limit = 100

    data, options = batches([5, 7, 6]), {"accumulate_grad_batches": window}
    outputs: list[Any] = []

    class Keep(Callback):
        def on_train_batch_end(self, trainer: Any, module: Any, out: Any, *rest: Any) -> None:
            outputs.append(out)
            assert trainer.batch_size == len(rest[0][0])

    _, ours = run(Plain(), data, Keep(), **options)
    _, whole = run(Roomy(), data, Keep(), **options)
    for name, value in ours.items():
        np.testing.assert_allclose(value, whole[name], rtol=1e-5, atol=1e-6, err_msg=name)
    for split, one in zip(outputs[:6], outputs[6:], strict=True):
        np.testing.assert_allclose(split["loss"].numpy(), one["loss"].numpy(), rtol=1e-4)
        assert split["size"].sum() == one["size"].sum()


def test_halves_until_it_fits_and_tells_the_last_size() -> None:
    task = Big()
    task.limit = 1
    result, _ = run(task, batches([7]), max_epochs=1)
    assert task.runs == [7, 4, 2, 1, 1, 1, 1, 1, 1, 1]
    assert "parts of 1," in result.warnings[0]
    assert len(result.warnings) == 1


def test_one_sample_that_does_not_fit_is_an_error() -> None:
    task = Big()
    task.limit = 0
    with pytest.raises(MemoryError, match="no room"):
        run(task, batches([3]))
    assert task.runs == [3, 2, 1]


def test_a_batch_without_a_number_of_samples_is_not_split() -> None:
    class Ragged(Regression):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            raise MemoryError("no room")

    with pytest.raises(MemoryError, match="no room"):
        run(Ragged(), [(np.zeros((2, 3), np.float32), np.zeros((3, 1), np.float32))])


def test_without_the_option_it_ends_the_run() -> None:
    with pytest.raises(MemoryError, match="no room"):
        fit(Big(), batches([8]), max_epochs=1)


def test_buffers_go_back() -> None:
    class Norm(Big):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)

        def forward(self, x: Any) -> Any:
            return super().forward(self.norm(x))

    _, ours = run(Norm(), batches([8, 6]))
    _, right = run(Norm(), batches([8, 6]), FromTheStart())
    for name, value in ours.items():
        np.testing.assert_array_equal(value, right[name], err_msg=name)


def test_the_size_that_fits_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / "x.ckpt"

    class Save(Callback):
        def on_train_batch_end(self, trainer: Any, *rest: Any) -> None:
            if trainer.position.batches == 2:
                trainer.save_checkpoint(path)

    task, again = Big(), Big()
    data = batches([8, 6, 5])
    run(task, data, Save())
    trainer = quiet(max_epochs=2, on_out_of_memory="split", callbacks=Save())
    trainer.fit(again, data, ckpt_path=path)
    assert again.runs == [4, 1, 4, 4, 4, 2, 4, 1]
    for name, value in weights(task).items():
        np.testing.assert_array_equal(value, weights(again)[name], err_msg=name)


def test_several_optimizers_are_split_together() -> None:
    class Tight(EagerTogether):
        limit = 3

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            if len(batch[0]) > self.limit:
                raise MemoryError
            return super().training_step(batch, batch_idx)

    class Roomy(Tight):
        limit = 100

    ours, whole = Tight(), Roomy()
    run(ours, batches([6, 5]))
    run(whole, batches([6, 5]))
    for name, value in weights(ours).items():
        np.testing.assert_allclose(value, weights(whole)[name], rtol=1e-5, atol=1e-6)


def test_wrong_values() -> None:
    with pytest.raises(ArgumentError, match=r'must be "raise" or "split". Got \'halve\''):
        fit(Big(), batches([2]), on_out_of_memory="halve")

    class Manual(Regression):
        automatic_optimization = False

    with pytest.raises(ArgumentError, match="on_out_of_memory works with automatic optimization"):
        fit(Manual(), batches([2]), on_out_of_memory="split")


def test_memory_of_a_gpu(pretend_gpu: Any) -> None:
    class OutOfMemoryError(MemoryError):
        """As CuPy's."""

    class Task(Big):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            try:
                return super().training_step(batch, batch_idx)
            except MemoryError as error:
                raise OutOfMemoryError("Out of memory allocating 512 bytes") from error

    data, options = batches([8, 3]), {"accelerator": "gpu", "accumulate_grad_batches": 2}
    result, ours = run(Task(), data, **options)
    _, right = run(Task(), data, FromTheStart(), **options)
    assert "(OutOfMemoryError: Out of memory allocating 512 bytes)" in result.warnings[0]
    for name, value in ours.items():
        np.testing.assert_array_equal(value, right[name], err_msg=name)
