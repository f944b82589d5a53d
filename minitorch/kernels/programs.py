"""Which kernels layers, losses and optimizers need: found by running each once without kernels.

A rehearsal of a program does all that a step does, but for the bodies of kernels: those it would
call are noted with the types of their arguments, and what they would write becomes zero. That takes
milliseconds, and says what `python -m minitorch.kernels --build` and the processes of `ahead.py`
have to compile.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np


class Need(NamedTuple):
    """A body that is called with arguments of these types.

    Attributes:
        kernel: The `cpu.kernel.Kernel`.
        types: numba's, those of the items and the team first.
        when: 0 in the forward pass, 1 in the backward pass, 2 in the update.
    """

    kernel: Any
    types: tuple[Any, ...]
    when: int

    @property
    def name(self) -> str:
        """That of the body."""
        return str(self.kernel.name)


def _rows(count: int = 128, width: int = 64) -> Any:
    import minitorch as mt

    return mt.randn(count, width, requires_grad=True)


def _sequences() -> Any:
    return _rows(256).reshape(4, 64, 64)


def _images(channels: int, size: int = 16, count: int = 4) -> Any:
    import minitorch as mt

    return mt.randn(count, channels, size, size, requires_grad=True)


def _layer(name: str, x: Callable[[], Any], *args: Any, **options: Any) -> Callable[[], Any]:
    """The program of a layer that is applied to `x()`."""

    def program() -> Any:
        import minitorch as mt

        y = getattr(mt.nn, name)(*args, **options)(x())
        return y[0] if isinstance(y, tuple) else y

    return program


def _function(name: str, *args: Any, **options: Any) -> Callable[[], Any]:
    """The program of a function of rows."""

    def program() -> Any:
        from minitorch.nn import functional as F

        return getattr(F, name)(_rows(), *args, **options)

    return program


def _cross_entropy() -> Any:
    import minitorch as mt
    from minitorch.nn import functional as F

    return F.cross_entropy(_rows(), mt.randint(0, 64, (128,)))


def _embedding() -> Any:
    import minitorch as mt

    return mt.nn.Embedding(96, 64)(mt.randint(0, 96, (4, 64)))


def _attention() -> Any:
    from minitorch.nn import functional as F

    x = _sequences()
    parts = (part.view(4, 64, 4, 16).transpose(1, 2) for part in (x, x, x))
    return F.scaled_dot_product_attention(*parts, is_causal=True)


def _convolutions() -> Any:
    """Of images and of channels, with windows of 3 × 3."""
    import minitorch as mt

    y = mt.nn.Conv2d(1, 32, 3, padding=1)(_images(1, 28, 16).detach())
    return mt.nn.Conv2d(32, 64, 3, padding=1)(y)


def _other_convolutions() -> Any:
    """With windows of one place, and of few places for many weights."""
    import minitorch as mt

    y = mt.nn.Conv2d(64, 32, 1, stride=2)(_images(64, 28, 16))
    return mt.nn.Conv2d(32, 32, 3, stride=2, padding=1)(y)


def _arithmetic() -> Any:
    """Of as many numbers as are shared out to threads."""
    import minitorch as mt

    x = mt.ones(1 << 14, 64, requires_grad=True)
    return x + x


def _update(name: str) -> Callable[[], Any]:
    def program() -> Any:
        import minitorch as mt

        layer = mt.nn.Linear(256, 256)
        for p in layer.parameters():
            p.grad = mt.zeros(p.shape)
        getattr(mt.optim, name)(layer.parameters(), lr=0.1).step()

    return program


def _few_columns() -> Any:
    """A product that is too narrow for panels."""
    import minitorch as mt

    return mt.nn.Linear(128, 10)(_rows(256, 128))


# For each name of a layer or optimizer, and for functions, a program whose result is
# differentiated; in the order in which a model uses them.
PROGRAMS: dict[str, Callable[[], Any]] = {
    "Embedding": _embedding,
    "Conv2d": _convolutions,
    "other convolutions": _other_convolutions,
    "BatchNorm2d": _layer("BatchNorm2d", lambda: _images(32), 32),
    "LayerNorm": _layer("LayerNorm", _rows, 64),
    "RMSNorm": _layer("RMSNorm", _rows, 64),
    "LSTM": _layer("LSTM", _sequences, 64, 64, batch_first=True),
    "GRU": _layer("GRU", _sequences, 64, 64, batch_first=True),
    "RNN": _layer("RNN", _sequences, 64, 64, batch_first=True),
    "Linear": _layer("Linear", lambda: _rows(256, 256), 256, 128),
    "few columns": _few_columns,
    "attention": _attention,
    "ReLU": _function("relu"),
    "GELU": _function("gelu"),
    "gelu_tanh": _function("gelu", approximate="tanh"),
    "SiLU": _function("silu"),
    "MaxPool2d": _layer("MaxPool2d", lambda: _images(32), 2),
    "dropout": _layer("Dropout", lambda: _rows(512), 0.5),
    "softmax": _function("softmax", dim=1),
    "log_softmax": _function("log_softmax", dim=1),
    "arithmetic": _arithmetic,
    "cross_entropy": _cross_entropy,
    "SGD": _update("SGD"),
    "Adam": _update("Adam"),
    "AdamW": _update("AdamW"),
}

# What models with all of these layers mostly need as well, which is seen only when they run; the
# surest first.
OFTEN_WITH: tuple[dict[tuple[str, ...], tuple[str, ...]], ...] = (
    {("Embedding", "LayerNorm"): ("attention",)},
    {
        ("Embedding",): ("cross_entropy",),
        ("Conv2d",): ("ReLU", "cross_entropy"),
        ("LayerNorm",): ("attention",),
        ("Linear",): ("cross_entropy",),
    },
    {("Conv2d",): ("other convolutions",), ("Linear",): ("few columns",)},
)


def guesses(names: set[str]) -> list[set[str]]:
    """The names with what often goes with them, more and more of it."""
    found = []
    for table in OFTEN_WITH:
        names = names | {
            g for layers, more in table.items() if names.issuperset(layers) for g in more
        }
        found.append(names)
    return found


@contextlib.contextmanager
def rehearsal() -> Iterator[list[Need]]:
    """Kernels are noted meanwhile, in the order in which they would be called, and not run."""
    from . import threads
    from .loader import load

    if load("product") is None:
        yield []
        return
    from .cpu.kernel import Kernel

    kind: Any = Kernel  # whose methods are put back
    needs: list[Need] = []

    def share(kernel: Any, workers: int, items: int, *args: Any) -> None:
        needs.append(Need(kernel, kernel.types(items, *args), 0))
        for a in args:
            if isinstance(a, np.ndarray) and a.dtype.kind == "f" and a.flags.writeable:
                a.fill(0)

    def call(kernel: Any, items: int, *args: Any) -> None:
        share(kernel, 0, items, *args)

    before = kind.share, kind.__call__, threads.count
    kind.share, kind.__call__ = share, call
    threads.count = lambda: 2  # some kernels are for several threads alone
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield needs
    finally:
        kind.share, kind.__call__, threads.count = before


def needs_of(name: str) -> list[Need]:
    """What the program of this name needs, in order and each once."""
    import minitorch as mt

    with rehearsal() as needs:
        result = PROGRAMS[name]()
        if result is None:
            return _once(need._replace(when=2) for need in needs)
        forward = len(needs)
        result.backward(mt.ones(result.shape))
    return _once(need._replace(when=int(i >= forward)) for i, need in enumerate(needs))


def in_order(programs: Iterable[list[Need]]) -> list[Need]:
    """What a step needs that is made of these programs one after the other."""
    found = list(programs)
    forward = [n for needs in found for n in needs if n.when == 0]
    backward = [n for needs in reversed(found) for n in needs if n.when == 1]
    return _once(forward + backward + [n for needs in found for n in needs if n.when == 2])


def wanted(known: dict[str, list[Need]], names: Iterable[str]) -> list[list[Need]]:
    """The needs of the programs that are named, or that alone need a body which is named.

    Args:
        known: What each program needs.
        names: Those of programs and bodies; others are passed over.
    """
    owners: dict[str, set[str]] = {}
    for program, needs in known.items():
        for need in needs:
            owners.setdefault(need.name, set()).add(program)
    found = set(names) & set(known)
    for name in names:
        if len(of := owners.get(name, set())) == 1:
            found |= of
    return [needs for program, needs in known.items() if program in found]


def _once(needs: Iterable[Need]) -> list[Need]:
    first: dict[Any, Need] = {}
    for need in needs:
        first.setdefault((need.kernel, need.types), need)
    return list(first.values())
