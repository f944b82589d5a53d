"""What the first batch tells of sequences: the order of their axes, and the meaning of masks."""

from __future__ import annotations

import math
from typing import Any

from minitorch import backend

CHECK = "batch-first-and-mask-polarity"


def axes_message(mode: str, steps: int, batch: int, line: str) -> str:
    """What to say of a recurrent layer that takes samples for steps.

    Args:
        mode: The kind of the layer.
        steps: The length that it took for time.
        batch: The length that it took for the number of sequences.
        line: The user's line.
    """
    kind = mode.partition("_")[0]
    return (
        f"{kind}: without batch_first the input is [time, batch, features]. Got [{steps}, {batch}, "
        f"…] at {line}, and this batch has {steps} samples. Set batch_first=True, or transpose the "
        "first two axes of the input."
    )


def padding_message(name: str, mask: Any, hides: bool, line: str) -> str | None:
    """What to say of a mask that hides a whole sequence, or None.

    Args:
        name: The operation or argument.
        mask: bool or float array, [B, S] where it `hides`, else […, L, S].
        hides: Whether true means hidden, as in key_padding_mask; otherwise it means seen.
        line: The user's line.
    """
    if mask is None or mask.ndim < 2 or not mask.size:
        return None
    mask = backend.to_host(mask)
    if mask.dtype.kind != "b":
        seen = mask > -math.inf
    else:
        seen = ~mask if hides else mask
    # One sequence: a row where it hides; all rows together of a mask for queries and keys.
    found = seen.any(axis=-1) if hides else seen.any(axis=(-1, -2))
    if found.ndim == 0 or found.all():
        return None
    first = int(found.reshape(-1).argmin())
    meaning = "hidden" if hides else "seen"
    return (
        f"{name}: every sequence needs a position that may be attended to; True means {meaning}. "
        f"Got a mask that hides sequence {first} as a whole at {line}. Was the mask meant the "
        "other way around? Pass ~mask."
    )


__all__ = ["CHECK", "axes_message", "padding_message"]
