"""Turns what users log into plain numbers, arrays and JSON values, or says what is wrong."""

import operator
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

import numpy as np

_INT64 = range(-(2**63), 2**63)


def check_step(step: Any) -> int:
    """The step as an int.

    Raises:
        TypeError: it is not an integer (3.0 is not: x axes must not depend on rounding).
        ValueError: it does not fit in 64 bits.
    """
    try:
        number = operator.index(step)
    except TypeError:
        raise TypeError(
            f"step must be an integer. Got {step!r} ({type(step).__name__}). "
            "Pass trainer.global_step, or int(step)."
        ) from None
    if number not in _INT64:
        raise ValueError(f"step must fit in 64 bits. Got {number}. Count from 0.")
    return number


def check_tag(tag: Any) -> str:
    """The tag, if it is a non-empty text that UTF-8 can hold."""
    if not isinstance(tag, str):
        raise TypeError(
            f"a metric's name must be a str. Got {tag!r} ({type(tag).__name__}). Pass str(name)."
        )
    if not tag:
        raise ValueError('a metric\'s name must not be empty. Got "". Name what you log.')
    try:
        tag.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"a metric's name must be valid Unicode. Got {tag!r} with half of a surrogate pair. "
            "Decode it with errors='replace' first."
        ) from None
    return tag


def to_array(value: Any) -> np.ndarray:
    """The value as a NumPy array on the host: `.detach()`, `.cpu()`, `.numpy()`, `.get()`."""
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, Mapping):
        return np.asarray(value, dtype=object)
    for name in ("detach", "cpu"):
        method = getattr(value, name, None)
        if callable(method):
            value = method()
    for name in ("numpy", "get"):
        method = getattr(value, name, None)
        if callable(method):
            return np.asarray(method())
    return np.asarray(value)


def describe(value: Any) -> str:
    """A short name for a value in error messages: `float32[3,4]`, or the type and the value."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return f"{value.dtype}[{','.join(map(str, value.shape))}]"
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def is_real(array: np.ndarray) -> bool:
    """Whether an array holds real numbers, those of ml_dtypes included."""
    if array.dtype.kind in "biuf":
        return True
    return array.dtype.kind == "V" and np.can_cast(array.dtype, np.float64, "same_kind")


def to_number(name: str, value: Any) -> int | float:
    """One metric's value as a Python number; NaN and infinities are kept.

    Raises:
        TypeError: it is not a real number.
        ValueError: it has several elements, or is an integer beyond the range of floats.
    """
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        try:
            float(value)
        except OverflowError:
            raise ValueError(
                f"a metric must fit in a float. Got {name}: an integer of {value.bit_length()} "
                "bits. Log its logarithm, or use log_text."
            ) from None
        return int(value)
    array = to_array(value)
    if array.dtype == object and hasattr(value, "__float__"):
        return float(value)
    if not is_real(array):
        shown = describe(array) if array.dtype != object else describe(value)
        raise TypeError(
            f"a metric must be one real number. Got {name}: {shown}. "
            "Use float(...) first, or log_text for texts."
        )
    if array.size != 1:
        raise ValueError(
            f"a metric must be one number. Got {name}: {describe(array)}. "
            "Log its mean, or use log_histogram."
        )
    element = array.reshape(-1)[0]
    return int(element) if array.dtype.kind in "biu" else float(element)


def to_real_array(tag: str, value: Any) -> np.ndarray:
    """A copy of the value as an array of real numbers, safe from later writes to the original."""
    array = to_array(value)
    if not is_real(array):
        raise TypeError(
            f"a histogram needs real numbers. Got {tag}: {describe(array)}. "
            "Take np.abs(...) of complex values, or pass one numeric array."
        )
    if array.size == 0:
        raise ValueError(
            f"a histogram needs at least one value. Got {tag}: {describe(array)}. "
            "Skip arrays that are empty."
        )
    return array.astype(np.float64 if array.dtype.kind == "V" else array.dtype, copy=True)


def to_params(params: Any) -> dict[str, Any]:
    """Hyperparameters as a dict, from a mapping, a dataclass or a namespace."""
    if isinstance(params, Mapping):
        return dict(params)
    if is_dataclass(params) and not isinstance(params, type):
        return asdict(params)
    if hasattr(params, "__dict__") and not isinstance(params, type) and not callable(params):
        return dict(vars(params))
    raise TypeError(
        f"hyperparameters must be a mapping, a dataclass or a namespace. Got {describe(params)}. "
        "Pass a dict."
    )


def to_json(value: Any) -> Any:
    """The value as JSON can hold it: non-finite floats and unknown objects become texts."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else non_finite(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        return [to_json(item) for item in items]
    if isinstance(value, (np.ndarray, np.generic)) and value.size <= 64:
        return to_json(value.tolist())
    if is_dataclass(value) and not isinstance(value, type):
        return to_json(asdict(value))
    return to_text(value)


def to_text(value: Any) -> str:
    """An object as one text: a class or function by its name, anything else by `str`."""
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    return str(value)


def non_finite(value: float) -> str:
    """The name of a non-finite float, one that `float(...)` and JavaScript read back."""
    return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"


def flatten(params: Mapping[str, Any], prefix: str = "") -> dict[str, bool | int | float | str]:
    """Nested hyperparameters as one level of `a/b` names with numbers, booleans and texts."""
    flat: dict[str, bool | int | float | str] = {}
    for key, value in params.items():
        name = f"{prefix}{key}"
        if isinstance(value, np.generic):
            value = value.item()
        if is_dataclass(value) and not isinstance(value, type):
            value = asdict(value)
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{name}/")
        elif isinstance(value, (bool, int, float, str)):
            flat[name] = value
        else:
            flat[name] = to_text(value)
    return flat
