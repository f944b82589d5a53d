"""Watches a few operations while the first batches run; afterwards they are as before."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.core.recorded import broadcast_message, crosses
from minitorch.callbacks.core.sequences import CHECK, axes_message, padding_message
from minitorch.checks import is_intended
from minitorch.errors import ShapeError
from minitorch.ops import comparison, shape, softmax

if TYPE_CHECKING:
    from minitorch.trainer import Trainer

_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


class Watch:
    """Sees shapes that autograd does not record: comparisons, reshapes of data, softmax axes.

    Args:
        trainer: Reports go to its checks.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self._thread = threading.get_ident()
        self._before: list[tuple[Any, str, Any]] = []
        self.sizes: set[int] = set()
        self.series: set[tuple[int, int]] = set()

    def open(self, sizes: set[int], series: set[tuple[int, int]]) -> None:
        """Begins to watch.

        Args:
            sizes: Lengths that are numbers of samples in this batch.
            series: The first two lengths of what has more than one axis in this batch.
        """
        self.sizes, self.series = sizes, series
        if self._before:
            return
        # Loaded late: many programs need none of them.
        from minitorch.nn.functional import multi_head
        from minitorch.ops import attention, recurrent

        for name in _COMPARISONS:
            self._wrap(getattr(comparison, name), self._compare)
        self._wrap(shape._RESHAPE, self._reshape)
        self._wrap(softmax._SOFTMAX, self._softmax)
        self._wrap(softmax._LOG_SOFTMAX, self._softmax)
        self._wrap(recurrent.recurrent_op, self._recurrent)
        self._wrap(attention.attention_op, self._attention)
        self._wrap(multi_head, self._padding, "_added")

    def close(self) -> None:
        """Puts every operation back."""
        for owner, attribute, body in self._before:
            setattr(owner, attribute, body)
        self._before = []

    def _wrap(self, owner: Any, look: Any, attribute: str = "forward") -> None:
        body = getattr(owner, attribute)
        name = getattr(owner, "name", attribute)
        self._before.append((owner, attribute, body))

        def watched(*args: Any, **params: Any) -> Any:
            if threading.get_ident() == self._thread:
                look(name, args, params)
            return body(*args, **params)

        setattr(owner, attribute, watched)

    def _compare(self, name: str, arrays: Any, params: Any) -> None:
        a, b = arrays
        shapes = a.shape, b.shape
        if not crosses(*shapes) or a.shape[0] not in self.sizes:
            return
        if is_intended("loss-shape-broadcast") or _one_source(a, b):
            return
        checks = self._trainer.checks
        text = broadcast_message(name, shapes, f" at {checks.line()}")
        checks.error("loss-shape-broadcast", text, ShapeError)

    def _reshape(self, name: str, arrays: Any, params: Any) -> None:
        old, new = params["source"], params["shape"]
        if len(old) < 3 or len(old) != len(new) or old[2:] != new[2:]:
            return
        if old[0] == old[1] or 1 in old[:2] or (old[1], old[0]) != tuple(new[:2]):
            return
        if is_intended("reshape-scrambles-axes"):
            return
        checks = self._trainer.checks
        checks.warn(
            "reshape-scrambles-axes",
            f"reshape: it keeps the order of the elements. Got {tuple(old)} → {tuple(new)} at "
            f"{checks.line()}, which mixes the first two axes. Did you mean .transpose(0, 1)?",
        )

    def _softmax(self, name: str, arrays: Any, params: Any) -> None:
        (array,) = arrays
        if params["axis"] != 0 or array.ndim < 2 or array.shape[0] not in self.sizes:
            return
        if array.shape[0] < 2 or is_intended("reshape-scrambles-axes"):
            return
        checks = self._trainer.checks
        checks.warn(
            "reshape-scrambles-axes",
            f"{name}: samples are independent. Got dim=0, the batch axis, of "
            f"{tuple(array.shape)} at {checks.line()}. Did you mean dim=-1?",
        )

    def _recurrent(self, name: str, arrays: Any, params: Any) -> None:
        steps, batch = len(params["sizes"]), max(params["sizes"], default=0)
        samples = getattr(self._trainer.train_data.loader, "batch_size", None)
        if (steps, batch) in self.series and steps == samples != batch:
            self._report(axes_message(params["mode"], steps, batch, self._trainer.checks.line()))

    def _attention(self, name: str, arrays: Any, params: Any) -> None:
        mask = arrays[3] if len(arrays) > 3 else None
        self._report(padding_message(name, mask, False, self._trainer.checks.line()))

    def _padding(self, name: str, args: Any, params: Any) -> None:
        which, mask, _ = args
        if which == "key_padding_mask" and mask is not None:
            line = self._trainer.checks.line()
            self._report(padding_message(which, mask._array, True, line))

    def _report(self, message: str | None) -> None:
        if message is not None and not is_intended(CHECK):
            self._trainer.checks.error(CHECK, message)


def _one_source(a: Any, b: Any) -> bool:
    """Whether both arrays show the same memory, as in a comparison of all pairs."""

    def root(array: Any) -> Any:
        while getattr(array, "base", None) is not None:
            array = array.base
        return id(array)

    return root(a) == root(b)
