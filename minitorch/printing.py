"""How a tensor is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import backend, dtypes
from .errors import ArgumentError


@dataclass
class PrintOptions:
    """What `set_printoptions` sets."""

    precision: int = 4
    threshold: int = 1000
    edgeitems: int = 3
    linewidth: int = 80


options = PrintOptions()


def set_printoptions(**changes: int) -> None:
    """Sets how tensors are shown: `precision, threshold, edgeitems, linewidth`.

    Raises:
        ArgumentError: There is no such option.
    """
    for name, value in changes.items():
        if name not in PrintOptions.__dataclass_fields__:
            known = ", ".join(PrintOptions.__dataclass_fields__)
            raise ArgumentError(f"set_printoptions: unknown option {name!r}. Use {known}.")
        setattr(options, name, value)


def tensor_repr(t: Any) -> str:
    """PyTorch's form: `tensor([1., 2.], grad_fn=<MulBackward>)`."""
    host = backend.to_host(t._array)
    if host.dtype.kind == "V":
        host = host.astype(np.float32)
    notes = []
    if t.device.type != "cpu":
        notes.append(f"device='{t.device}'")
    default = (dtypes.get_default_dtype(), dtypes.int64, dtypes.bool_, dtypes.result_type(1j))
    if t.dtype not in default or (not host.size and t.dtype is not default[0]):
        notes.append(f"dtype={t.dtype}")
    if not host.size and host.ndim != 1:
        notes.insert(0, f"size={tuple(host.shape)}")
    if t.grad_fn is not None:
        notes.append(f"grad_fn={t.grad_fn}")
    elif t.requires_grad:
        notes.append("requires_grad=True")
    body = _numbers(host) if host.size else "[]"
    tail = "".join(f", {note}" for note in notes)
    return f"tensor({body}{tail})"


def _numbers(host: np.ndarray) -> str:
    settings: dict[str, Any] = {
        "precision": options.precision,
        "threshold": options.threshold,
        "edgeitems": options.edgeitems,
        "max_line_width": options.linewidth,
        "separator": ", ",
        "prefix": "tensor(",
    }
    if host.dtype.kind in "fc":
        parts = np.concatenate([host.real.reshape(-1), host.imag.reshape(-1)])
        finite = parts[np.isfinite(parts)] if host.dtype.kind == "c" else host[np.isfinite(host)]
        whole = bool((finite == np.trunc(finite)).all())
        magnitude = np.abs(finite[finite != 0])
        wide = magnitude.size and (
            magnitude.max() / magnitude.min() > 1000
            and not whole
            or magnitude.max() > 1e8
            or (magnitude.min() < 1e-4 and not whole)
        )
        if wide:
            kinds = ("float_kind", "complex_kind")
            settings["formatter"] = dict.fromkeys(kinds, lambda x: f"{x:.{options.precision}e}")
        elif not whole:
            settings["floatmode"] = "fixed"
    return np.array2string(host, **settings)
