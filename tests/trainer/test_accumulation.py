"""Accumulated gradients equal those of one large batch, whatever the sizes of its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, arrays, fit, quiet

import minitorch as mt
from minitorch.callbacks import Callback
from minitorch.callbacks.core import Accumulation
from minitorch.errors import DataError, TrainerError


class Sgd(Regression):
    """No momentum: the weights after k updates show the gradients."""

    def configure_optimizers(self) -> Any:
        return mt.optim.SGD(self.parameters(), lr=0.1)


class Gradients(Callback):
    """Keeps the gradients of every update."""

    def __init__(self) -> None:
        self.seen: list[np.ndarray] = []

    def on_before_optimizer_step(self, trainer: Any, module: Any, optimizer: Any) -> None:
        flat = [p.grad.numpy().ravel() for p in module.parameters()]
        self.seen.append(np.concatenate(flat).copy())


def batches(sizes: list[int]) -> list[tuple[Any, Any]]:
    x, y = arrays(sum(sizes))
    ends = np.cumsum(sizes)
    return [(x[e - n : e], y[e - n : e]) for e, n in zip(ends, sizes, strict=True)]


def gradients(data: Any, **options: Any) -> list[np.ndarray]:
    mt.manual_seed(0)
    keep = Gradients()
    fit(Sgd(), data, max_epochs=1, callbacks=[keep], **options)
    return keep.seen


WINDOWS = {
    "equal": ([4, 4, 4, 4], 2),
    "unequal": ([5, 2, 1, 7], 2),
    "short last window": ([4, 4, 4], 2),
    "short and unequal": ([3, 5, 2, 1, 1], 3),
    "window longer than the epoch": ([2, 3], 8),
    "one sample": ([1, 6, 1], 2),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_window_equals_one_large_batch(case: str) -> None:
    sizes, window = WINDOWS[case]
    merged = [sum(sizes[i : i + window]) for i in range(0, len(sizes), window)]
    small = gradients(batches(sizes), accumulate_grad_batches=window)
    large = gradients(batches(merged))
    assert len(small) == len(large) == len(merged)
    for a, b in zip(small, large, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_unsized_loader_closes_its_last_window() -> None:
    class Stream:
        def __iter__(self) -> Any:
            return iter(batches([4, 4, 4]))

    small = gradients(Stream(), accumulate_grad_batches=2)
    for a, b in zip(small, gradients(batches([8, 4])), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_count_weights_a_loss_over_tokens() -> None:
    class Tokens(Sgd):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            x, y, mask = batch
            errors = ((self(x) - y) ** 2).squeeze(1) * mask
            count = float(mask.sum())
            return {"loss": errors.sum() / count, "count": count}

    x, y = arrays(8)
    mask = np.array([1, 1, 1, 1, 1, 0, 0, 0], np.float32)
    keep = Gradients()
    mt.manual_seed(0)
    parts = [(x[:4], y[:4], mask[:4]), (x[4:], y[4:], mask[4:])]
    fit(Tokens(), parts, max_epochs=1, callbacks=keep, accumulate_grad_batches=2)
    (expected,) = gradients([(x[:5], y[:5])])
    np.testing.assert_allclose(keep.seen[0], expected, rtol=1e-5)


def test_zero_grad_comes_once_per_window_and_stray_gradients_are_gone() -> None:
    class Stray(Callback):
        def on_train_batch_start(
            self, trainer: Any, module: Any, batch: Any, batch_idx: int
        ) -> None:
            if batch_idx % 2 == 0:
                module.linear.weight.grad = mt.full((1, 3), 100.0)

    mt.manual_seed(0)
    keep = Gradients()
    options: dict[str, Any] = {"max_epochs": 1, "accumulate_grad_batches": 2}
    fit(Sgd(), batches([4] * 4), callbacks=[Stray(), keep], **options)
    clean = gradients(batches([4] * 4), accumulate_grad_batches=2)
    np.testing.assert_array_equal(keep.seen, clean)


def test_global_step_counts_updates() -> None:
    result = fit(Sgd(), batches([4] * 5), max_epochs=3, accumulate_grad_batches=2)
    assert result.global_step == 9


def test_batches_without_a_size_need_a_count() -> None:
    class Odd(Sgd):
        def training_step(self, batch: Any, batch_idx: int) -> Any:
            return self.loss(batch["xy"])

    odd = [{"xy": batches([4])[0], "edges": np.zeros((2, 9), np.float32)}] * 2
    with pytest.raises(DataError, match=r"agree on their first axis.*f32\[2,9\].*\"count\": n"):
        fit(Odd(), odd, max_epochs=1, accumulate_grad_batches=2)
    fit(Odd(), odd, max_epochs=1)


def test_window_changes_between_updates_only() -> None:
    class Change(Callback):
        def __init__(self, event: str) -> None:
            setattr(self, event, self.change)

        def change(self, trainer: Any, module: Any, *args: Any) -> None:
            trainer.accumulation.set_batches(trainer, 2)

    result = fit(Sgd(), batches([4] * 4), max_epochs=1, callbacks=Change("on_train_epoch_start"))
    assert result.global_step == 2
    with pytest.raises(TrainerError, match=r"1 of 3 batches.*on_train_epoch_start"):
        fit(
            Sgd(),
            batches([4] * 4),
            max_epochs=1,
            accumulate_grad_batches=3,
            callbacks=Change("on_train_batch_end"),
        )


def test_update_at_the_end_of_an_unsized_epoch_counts() -> None:
    class Stream:
        def __iter__(self) -> Any:
            return iter(batches([4] * 6))

    class Change(Callback):
        def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
            trainer.accumulation.set_batches(trainer, 4 if trainer.current_epoch == 0 else 1)

    trainer = quiet(max_epochs=2, callbacks=Change())
    result = trainer.fit(Sgd(), Stream())
    assert result.global_step == trainer.optimizers[0].updates == 8


@pytest.mark.parametrize(("chosen", "updates"), [(True, 2 + 2), (False, 2 + 1)])
def test_resumed_run_keeps_the_window_that_was_set(
    chosen: bool, updates: int, tmp_path: Any
) -> None:
    class SetOnce(Callback):
        def on_train_start(self, trainer: Any, module: Any) -> None:
            trainer.accumulation.set_batches(trainer, 2)

    path, data = tmp_path / "x.ckpt", batches([4] * 4)
    options: dict[str, Any] = {"callbacks": SetOnce()} if chosen else {"accumulate_grad_batches": 2}
    trainer = quiet(max_epochs=1, **options)
    trainer.fit(Sgd(), data)
    trainer.save_checkpoint(path)
    resumed = quiet(max_epochs=2, accumulate_grad_batches=4)
    assert resumed.fit(Sgd(), data, ckpt_path=path).global_step == updates


def test_subclass_replaces_its_kind() -> None:
    class Sum(Accumulation):
        """Adds gradients up instead of averaging them."""

        def on_window_end(self, trainer: Any, module: Any) -> None:
            return None

    own = Sum()
    trainer = quiet(callbacks=own, accumulate_grad_batches=2, max_epochs=1)
    assert trainer.accumulation is own
    keep = Gradients()
    mt.manual_seed(0)
    fit(Sgd(), batches([4, 4]), max_epochs=1, callbacks=[Sum(), keep], accumulate_grad_batches=2)
    (mean,) = gradients(batches([4, 4]), accumulate_grad_batches=2)
    np.testing.assert_allclose(keep.seen[0], 2 * mean, rtol=1e-6)
