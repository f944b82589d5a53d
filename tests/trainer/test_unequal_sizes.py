"""Batches whose tensors do not agree on a number of samples: who needs it says so, and helps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from toy_tasks import Regression, fit, loader, weights

import minitorch as mt
from minitorch.callbacks.core.nested import batch_size
from minitorch.errors import DataError

X = mt.zeros(3, 2)
SIZES: dict[str, tuple[Any, int | None]] = {
    "tensors": ((X, mt.zeros(3)), 3),
    "with a number": ([mt.tensor(1.0), X], 3),
    "with an array": ((X, np.zeros((3, 5))), 3),
    "with words": ([X, "a", "b"], 3),
    "in a dict": ({"x": X, "more": [X]}, 3),
    "unequal tensors": ([X, mt.zeros(4)], None),
    "an unequal array": ((X, np.zeros(4)), None),
    "nothing": ((), None),
    "numbers alone": ((mt.tensor(1.0), mt.tensor(2.0)), None),
}


@pytest.mark.parametrize("kind", SIZES)
def test_samples_of_a_batch(kind: str) -> None:
    batch, size = SIZES[kind]
    if size is not None:
        assert batch_size(batch) == size
        return
    with pytest.raises(DataError, match="first axis"):
        batch_size(batch)


class Both(Regression):
    """The mean over the samples of two loaders."""

    counted = False
    logs: dict[str, Any] = {}

    def __init__(self) -> None:
        mt.manual_seed(1)
        super().__init__()

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        first, second = (len(one[0]) for one in batch)
        a, b = (self.loss(one) for one in batch)
        loss = (a * first + b * second) / (first + second)
        if self.logs:
            self.log("both", loss, **self.logs)
        return {"loss": loss, "count": first + second} if self.counted else loss


def data(first: int = 20) -> list[Any]:
    return [loader(first, 4, shuffle=False), loader(15, 3, shuffle=False)]


def test_accumulation_names_the_key() -> None:
    text = (
        "accumulate_grad_batches=2: all tensors of a batch must agree on their first axis, to say "
        "how many samples it has. Got f32[4,3], f32[4,1], f32[3,3], f32[3,1]. Return "
        '{"loss": loss, "count": n} from training_step: batches are weighted by n, the number of '
        "samples that the loss is a mean of."
    )
    with pytest.raises(DataError, match=re.escape(text)):
        fit(Both(), data(), max_epochs=1, accumulate_grad_batches=2)


def test_what_the_message_says_helps() -> None:
    class Counted(Both):
        counted = True

    class Whole(Both):
        """One batch of what the other sees in five."""

        def training_step(self, batch: Any, batch_idx: int) -> Any:
            (x, y), (u, v) = batch
            return self.loss((mt.cat([x, u]), mt.cat([y, v])))

    ours, theirs = Counted(), Whole()
    fit(ours, data(18), max_epochs=1, accumulate_grad_batches=5)
    whole = [loader(18, 18, shuffle=False), loader(15, 15, shuffle=False)]
    fit(theirs, whole, max_epochs=1)
    for name, value in weights(ours).items():
        np.testing.assert_allclose(value, weights(theirs)[name], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("options", [{}, {"on_out_of_memory": "split"}])
def test_a_batch_alone_needs_no_number(options: Any) -> None:
    plain, task = Both(), Both()
    fit(plain, data(), max_epochs=1)
    fit(task, data(), max_epochs=1, **options)
    for name, value in weights(plain).items():
        np.testing.assert_array_equal(value, weights(task)[name], err_msg=name)


def test_log_names_its_argument() -> None:
    class Logs(Both):
        logs = {"on_epoch": True}

    class Helped(Both):
        logs = {"on_epoch": True, "batch_size": 7}

    text = r"log\('both'\): all tensors .* Got f32\[4,3\].* Pass batch_size=n, the samples behind"
    with pytest.raises(DataError, match=text):
        fit(Logs(), data(), max_epochs=1)
    assert "both_epoch" in fit(Helped(), data(), max_epochs=1).history
