"""`intended`: how code tells a check that it means what it does."""

from __future__ import annotations

import difflib
import fnmatch
import functools
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TypeVar

from .autograd.mode import state
from .errors import ArgumentError

T = TypeVar("T", bound=Callable[..., Any])

KNOWN = frozenset(
    "batch-first-and-mask-polarity batchnorm-not-really-frozen bce-nll-input-mixup data-leakage "
    "dataset-setup-state-on-one-process dead-units-exploding "
    "debug-mode-left-on double-softmax empty-cache-in-loop float64-creep host-sync-in-step "
    "init-last-layer label-shift-off-by-one "
    "loader-bottleneck loss-shape-broadcast lossless-step manual-optimization-traps "
    "monitor-mode-wrong precision-default-surprise prefix-mismatch-nonstrict "
    "reshape-scrambles-axes scheduler-unit-mismatch unregistered-layers unused-params "
    "update-had-no-effect weight-decay-on-everything weight-tying-broken".split()
)
"""Checks that can be told so here; docs/pitfalls.md explains each."""


class intended:
    """Says that what a check would object to is meant, in a block or a function.

    `with intended("double-softmax"):` around the place; `@intended("unused-params", "aux.*")` on
    `training_step` or `configure_optimizers` for what a Trainer checks about the whole step.

    Args:
        check: Name of the check, as its message gives it.
        names: Patterns for what is meant, such as paths of parameters; none for everything.

    Raises:
        ArgumentError: There is no such check.

    >>> p = mt.tensor([[0.2, 0.8]], requires_grad=True).softmax(1)
    >>> with mt.intended("double-softmax"):
    ...     loss = mt.nn.functional.cross_entropy(p, mt.tensor([1]))
    """

    def __init__(self, check: str, *names: str) -> None:
        if check not in KNOWN:
            near = difflib.get_close_matches(str(check), KNOWN, n=1)
            known = f"Known are {', '.join(sorted(KNOWN))}."
            hint = f"Did you mean {near[0]!r}?" if near else known
            raise ArgumentError(f"intended: there is no check {check!r}. {hint}")
        self.check = check
        self.names = names
        self._before: list[tuple[Any, ...]] = []

    def allows(self, check: str, name: str | None) -> bool:
        """Whether this says that `check` may find `name`."""
        if check != self.check:
            return False
        return not self.names or any(fnmatch.fnmatch(name or "", n) for n in self.names)

    def __enter__(self) -> intended:
        self._before.append(state.meant)
        state.meant = (*state.meant, self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        state.meant = self._before.pop()

    def __call__(self, function: T) -> T:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        call.__intended__ = (self, *getattr(function, "__intended__", ()))  # type: ignore[attr-defined]
        return call  # type: ignore[return-value]


def is_intended(check: str, name: str | None = None, blocks: Iterable[Any] | None = None) -> bool:
    """Whether an open block (or one of `blocks`) says that `check` may find `name`."""
    return any(block.allows(check, name) for block in (state.meant if blocks is None else blocks))
