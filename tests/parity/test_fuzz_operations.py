"""2 000 random calls of elementwise operations and reductions, of shapes, and of indexing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")
from fuzz import Call, Rng, run  # noqa: E402

import minitorch as mt  # noqa: E402

FLOATS = ("float32", "float64")
DTYPES = (*FLOATS, "float64", "int64", "uint8", "bool", "int32")
# A pair of lists: what needs numbers in a range, and the range.
ONE = (
    "abs neg square exp expm1 sin cos sinh cosh tanh asinh atan sigmoid relu erf erfc sinc i0 sign "
    "sgn floor ceil trunc frac deg2rad rad2deg isnan isinf isfinite signbit logical_not positive "
    "exp2 isposinf isneginf isreal nan_to_num clone round"
).split()
POSITIVE = "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma logit acosh".split()
INSIDE = "asin acos atanh erfinv".split()
TWO = (
    "add sub mul maximum minimum fmax fmin hypot logaddexp logaddexp2 atan2 copysign eq ne lt le "
    "gt ge logical_and logical_or logical_xor xlogy rsub isclose"
).split()
DIVISIONS = "div true_divide fmod remainder floor_divide".split()
BITS = "bitwise_and bitwise_or bitwise_xor gcd lcm".split()


def pick(rng: Rng, items: Any) -> Any:
    return items[int(rng.integers(len(items)))]


def lengths(rng: Rng, ndim: int | None = None, least: int = 0) -> tuple[int, ...]:
    n = int(rng.integers(0, 4)) if ndim is None else ndim
    return tuple(
        int(pick(rng, (0, 1, 2, 3, 4, 5) if least == 0 else (1, 2, 3, 4))) for _ in range(n)
    )


def values(
    rng: Rng, shape: tuple[int, ...], dtype: str, low: float = -3.0, high: float = 3.0
) -> np.ndarray:
    """Numbers in the range; half of the time in another order of memory."""
    if dtype == "bool":
        a = rng.random(shape) < 0.5
    elif dtype.startswith(("int", "uint")):
        a = rng.integers(1 if low > 0 or dtype == "uint8" else -5, 6, shape)
    else:
        a = rng.uniform(low, high, shape)
    return np.asarray(a).astype(dtype)


def broadcastable(rng: Rng, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape, some of its axes as 1 or left out in front; rarely one that does not fit."""
    if rng.random() < 0.05:
        return lengths(rng)
    cut = shape[int(rng.integers(0, len(shape) + 1)) :] if rng.random() < 0.3 else shape
    return tuple(1 if rng.random() < 0.3 else n for n in cut)


def elementwise(rng: Rng) -> Call:
    kind = pick(rng, "one one positive inside two two two division bits number clamp".split())
    dtype, shape = pick(rng, DTYPES), lengths(rng)
    if kind in ("one", "positive", "inside"):
        name = pick(rng, {"one": ONE, "positive": POSITIVE, "inside": INSIDE}[kind])
        low, high = {"one": (-3, 3), "positive": (0.1, 0.9), "inside": (-0.9, 0.9)}[kind]
        dtype = dtype if kind == "one" else pick(rng, FLOATS)
        if name == "acosh":
            low, high = 1.1, 3
        return Call(name, lambda m, x: getattr(m, name)(x), [values(rng, shape, dtype, low, high)])
    if kind == "number":
        name, number = pick(rng, TWO[:3] + ["div", "eq", "lt", "pow"]), pick(rng, (2, 0.5, True, 3))
        low = 0.2 if name == "pow" else -3.0
        return Call(
            f"{name} {number}",
            lambda m, x: getattr(m, name)(x, number),
            [values(rng, shape, dtype, low)],
        )
    if kind == "clamp":
        low, high = pick(rng, (None, -1, 0.5)), pick(rng, (None, 1, 0.75))
        return Call(
            f"clamp {low} {high}",
            lambda m, x: m.clamp(x, min=low, max=high),
            [values(rng, shape, pick(rng, DTYPES[:4]))],
        )
    name = pick(rng, {"two": TWO, "division": DIVISIONS, "bits": BITS}[kind])
    dtypes = ("int64", "int32", "uint8", "bool") if kind == "bits" else DTYPES
    other = pick(rng, dtypes) if rng.random() < 0.4 else None
    first = pick(rng, dtypes)
    low = 0.3 if kind == "division" or name in ("xlogy", "hypot", "copysign") else -3.0
    a = values(rng, shape, first, low)
    b = values(rng, broadcastable(rng, shape), other or first, low)
    if name.startswith("logaddexp") or name == "atan2":
        a, b = (x.astype("float64") if x.dtype.kind != "f" else x for x in (a, b))
    if name in ("floor_divide", "copysign"):
        return Call(name, lambda m, x, y: getattr(m, name)(x.detach(), y.detach()), [a, b])
    return Call(name, lambda m, x, y: getattr(m, name)(x, y), [a, b])


DIMS = "sum mean amax amin var std prod nansum nanmean all any count_nonzero logsumexp".split()
ALONG = (
    "max min argmax argmin median nanmedian mode cumsum cumprod cummax cummin logcumsumexp sort "
    "argsort softmax log_softmax aminmax diff"
).split()


def dims_of(rng: Rng, ndim: int, several: bool) -> Any:
    """An axis, several, or rarely one that does not exist."""
    if rng.random() < 0.05:
        return ndim + 1
    axes = [int(a) for a in rng.permutation(max(ndim, 1))]
    signed = [a if rng.random() < 0.6 else a - max(ndim, 1) for a in axes]
    if several and rng.random() < 0.4:
        return tuple(signed[: int(rng.integers(1, len(signed) + 1))])
    return signed[0]


def reduction(rng: Rng) -> Call:
    name = pick(rng, [*DIMS, *ALONG])
    floating = name in "mean var std nanmean logsumexp logcumsumexp softmax log_softmax".split()
    dtype = pick(rng, FLOATS if floating else DTYPES)
    shape = lengths(rng, least=int(rng.random() < 0.8))
    dim = dims_of(rng, len(shape), name in DIMS and name not in ("prod", "logsumexp"))
    options: dict[str, Any] = {"dim": dim}
    if name in DIMS[:-2] or name in ALONG[:7] or name in ("logsumexp", "aminmax"):
        options["keepdim"] = bool(rng.random() < 0.5)
    if name in ("var", "std"):
        options["correction"] = int(pick(rng, (0, 1)))
    if name in "argmax argmin argsort".split():
        return Call(
            f"{name} {options}",
            lambda m, x: getattr(m, name)(x.detach(), **options),
            [distinct(rng, shape, dtype)],
        )
    a = distinct(rng, shape, dtype) if name in ALONG else values(rng, shape, dtype)
    if name == "sort":
        options["stable"] = True
    return Call(f"{name} {options}", lambda m, x: getattr(m, name)(x, **options), [a])


def distinct(rng: Rng, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values without ties, whose places torch leaves open."""
    if dtype == "bool":
        return values(rng, shape, dtype)
    count = int(np.prod(shape))
    order = rng.permutation(count) - (0 if dtype == "uint8" else count // 2)
    return order.reshape(shape).astype(dtype) * (0.37 if dtype in FLOATS else 1)


def shapes(rng: Rng) -> Call:
    shape = lengths(rng, least=int(rng.random() < 0.7))
    ndim = len(shape)
    name, call = pick(rng, list(SHAPES.items()))
    arguments = call(rng, shape, ndim)
    function = arguments.pop("call", None) or (lambda m, x: getattr(m, name)(x, **arguments))
    return Call(f"{name} {arguments}", function, [values(rng, shape, pick(rng, DTYPES))])


def _reshaped(rng: Rng, shape: tuple[int, ...], ndim: int) -> dict[str, Any]:
    target = [int(n) for n in rng.permutation(shape)]
    if target and rng.random() < 0.5:
        target[0] = -1
    return {"call": lambda m, x: m.reshape(x, tuple(target))}


def _axis(rng: Rng, ndim: int) -> int:
    return dims_of(rng, ndim, False)  # type: ignore[no-any-return]


def _method(name: str, *args: Any) -> dict[str, Any]:
    return {"call": lambda m, x: getattr(x, name)(*args), "what": args}


def _parts(name: str, *args: Any) -> dict[str, Any]:
    return {"call": lambda m, x: list(getattr(m, name)(x, *args)), "what": args}


def _joined(name: str, count: int, *args: Any) -> dict[str, Any]:
    return {"call": lambda m, x: getattr(m, name)([x] * count, *args), "what": args}


def _sizes(rng: Rng, shape: tuple[int, ...], ndim: int) -> dict[str, Any]:
    axis = _axis(rng, ndim)
    length = shape[axis] if -ndim <= axis < ndim else 2
    cut = int(rng.integers(0, length + 1))
    return _parts("split", [cut, length - cut], axis)


SHAPES: dict[str, Callable[[Rng, tuple[int, ...], int], dict[str, Any]]] = {
    "reshape": _reshaped,
    "permute": lambda rng, s, n: {"dims": tuple(int(a) for a in rng.permutation(n))},
    "transpose": lambda rng, s, n: {"dim0": _axis(rng, n), "dim1": _axis(rng, n)},
    "movedim": lambda rng, s, n: {"source": _axis(rng, n), "destination": _axis(rng, n)},
    "squeeze": lambda rng, s, n: {"dim": dims_of(rng, n, True)},
    "unsqueeze": lambda rng, s, n: {"dim": _axis(rng, n + 1)},
    "flatten": lambda rng, s, n: {"start_dim": _axis(rng, n), "end_dim": _axis(rng, n)},
    "expand": lambda rng, s, n: _method(
        "expand", *(2,) * int(rng.integers(n == 0, 2)), *[3 if k == 1 else -1 for k in s]
    ),
    "repeat": lambda rng, s, n: _method(
        "repeat", *lengths(rng, max(n, 1) + int(rng.integers(0, 2)))
    ),
    "tile": lambda rng, s, n: {"dims": lengths(rng)},
    "flip": lambda rng, s, n: {"dims": tuple({dims_of(rng, n, False) for _ in range(2)})},
    "roll": lambda rng, s, n: {
        "shifts": int(rng.integers(-3, 4)),
        "dims": int(rng.integers(-n, n)) if n else 0,
    },
    "rot90": lambda rng, s, n: {
        "k": int(rng.integers(-2, 5)),
        "dims": [int(a) for a in rng.permutation(max(n, 2))[:2]],
    },
    "tril": lambda rng, s, n: {"diagonal": int(rng.integers(-2, 3))},
    "triu": lambda rng, s, n: {"diagonal": int(rng.integers(-2, 3))},
    "diagonal": lambda rng, s, n: {
        "offset": int(rng.integers(-1, 2)),
        "dim1": _axis(rng, n),
        "dim2": _axis(rng, n),
    },
    "diag": lambda rng, s, n: {"diagonal": int(rng.integers(-2, 3))},
    "diag_embed": lambda rng, s, n: {"offset": int(rng.integers(-2, 3))},
    "diagflat": lambda rng, s, n: {"offset": int(rng.integers(-2, 3))},
    "narrow": lambda rng, s, n: {
        "dim": _axis(rng, n),
        "start": int(rng.integers(0, 3)),
        "length": int(rng.integers(0, 3)),
    },
    "select": lambda rng, s, n: {"dim": _axis(rng, n), "index": int(rng.integers(-2, 3))},
    "split": lambda rng, s, n: _parts("split", int(rng.integers(1, 4)), _axis(rng, n)),
    "split sizes": _sizes,
    "chunk": lambda rng, s, n: _parts("chunk", int(rng.integers(1, 4)), _axis(rng, n)),
    "tensor_split": lambda rng, s, n: _parts(
        "tensor_split", int(rng.integers(1, 4)), _axis(rng, n)
    ),
    "hsplit": lambda rng, s, n: _parts("hsplit", int(rng.integers(1, 3))),
    "vsplit": lambda rng, s, n: _parts("vsplit", [1]),
    "unbind": lambda rng, s, n: _parts("unbind", _axis(rng, n)),
    "unfold": lambda rng, s, n: _method(
        "unfold", _axis(rng, n), int(rng.integers(0, 4)), int(rng.integers(1, 3))
    ),
    "repeat_interleave": lambda rng, s, n: {
        "repeats": int(rng.integers(0, 3)),
        "dim": pick(rng, (None, _axis(rng, n))),
    },
    "atleast_2d": lambda rng, s, n: {},
    "atleast_3d": lambda rng, s, n: {},
    "ravel": lambda rng, s, n: {},
    "t": lambda rng, s, n: {},
    "fliplr": lambda rng, s, n: {},
    "broadcast_to": lambda rng, s, n: _method("broadcast_to", (2, *s)),
    "cat": lambda rng, s, n: _joined("cat", 3, _axis(rng, n)),
    "stack": lambda rng, s, n: _joined("stack", 2, _axis(rng, n + 1)),
    "hstack": lambda rng, s, n: _joined("hstack", 2),
    "dstack": lambda rng, s, n: _joined("dstack", 2),
    "column_stack": lambda rng, s, n: _joined("column_stack", 2),
}


def _long(m: Any, array: np.ndarray) -> Any:
    return m.tensor(array.astype(np.int64))


def indexing(rng: Rng) -> Call:
    shape = lengths(rng, int(rng.integers(1, 4)), least=1)
    name = pick(rng, list(INDEXING))
    dtype = pick(rng, (*FLOATS, "int64"))
    return INDEXING[name](rng, shape, name, dtype)


def _key(rng: Rng, shape: tuple[int, ...]) -> list[Any]:
    """One random index per axis, as plain data that both libraries make their own index of."""
    key: list[Any] = []
    for n in shape:
        kind = pick(rng, ("int", "slice", "slice", "none", "list", "tensor", "..."))
        if kind == "int":
            key.append(int(rng.integers(-n, n + (rng.random() < 0.03))))
        elif kind == "slice":
            ends = [pick(rng, (None, 0, 1, 2, -1)) for _ in range(2)]
            key.append(slice(*ends, pick(rng, (None, 1, 2))))
        elif kind == "none":
            key += [None, slice(None)]
        elif kind == "...":
            key.append(... if ... not in key else slice(None))
        else:
            wide = lengths(rng, 1 if kind == "list" else 2, least=1)
            key.append(("tensor" if kind == "tensor" else "list", rng.integers(-n, n, wide)))
    return key[: int(rng.integers(1, len(key) + 1))]


def _made(m: Any, key: list[Any]) -> tuple[Any, ...]:
    return tuple(
        (_long(m, part[1]) if part[0] == "tensor" else part[1].tolist())
        if isinstance(part, tuple)
        else part
        for part in key
    )


def _get(rng: Rng, shape: tuple[int, ...], name: str, dtype: str) -> Call:
    key = _key(rng, shape)
    return Call(f"x[{key}]", lambda m, x: x[_made(m, key)], [values(rng, shape, dtype)])


def _set(rng: Rng, shape: tuple[int, ...], name: str, dtype: str) -> Call:
    key = [k for k in _key(rng, shape) if not isinstance(k, tuple)] or [0]

    def call(m: Any, x: Any, v: Any) -> Any:
        y = x * 1
        y[_made(m, key)] = v
        return y

    return Call(f"x[{key}] = v", call, [values(rng, shape, dtype), values(rng, (), dtype)])


def _mask(rng: Rng, shape: tuple[int, ...], name: str, dtype: str) -> Call:
    whole = rng.random(shape) < 0.5
    mask = whole if rng.random() < 0.5 else whole.reshape(shape[0], -1)[:, 0]
    if name == "x[mask]":
        return Call(name, lambda m, x: x[m.tensor(mask)], [values(rng, shape, dtype)])
    if name == "masked_select":
        return Call(
            name, lambda m, x: m.masked_select(x, m.tensor(whole)), [values(rng, shape, dtype)]
        )
    if name == "masked_fill":
        return Call(
            name, lambda m, x: x.masked_fill(m.tensor(whole), 2), [values(rng, shape, dtype)]
        )
    return Call(
        name,
        lambda m, x, s: x.masked_scatter(m.tensor(whole), s),
        [values(rng, shape, dtype), values(rng, (whole.size,), dtype)],
    )


def _gather(rng: Rng, shape: tuple[int, ...], name: str, dtype: str) -> Call:
    axis = int(rng.integers(-len(shape), len(shape)))
    part = tuple(int(rng.integers(1, n + 1)) for n in shape)
    index = rng.integers(0, shape[axis] + (rng.random() < 0.03), part)
    arrays = [values(rng, shape, dtype, 0.3)]
    if name == "gather":
        return Call(name, lambda m, x: m.gather(x, axis, _long(m, index)), arrays)
    arrays.append(values(rng, part, dtype, 0.3))
    if name == "scatter":
        # Where places repeat, which value stays is open: one place for each.
        index = np.argsort(rng.random(shape), axis)[tuple(slice(n) for n in part)]
    if name == "scatter_reduce":
        how, own = pick(rng, ("sum", "prod", "mean", "amax", "amin")), bool(rng.random() < 0.5)
        return Call(
            f"{name} {axis} {how} {own}",
            lambda m, x, s: m.scatter_reduce(x, axis, _long(m, index), s, how, include_self=own),
            arrays,
        )
    return Call(name, lambda m, x, s: getattr(m, name)(x, axis, _long(m, index), s), arrays)


def _slices(rng: Rng, shape: tuple[int, ...], name: str, dtype: str) -> Call:
    axis = int(rng.integers(-len(shape), len(shape)))
    count = int(rng.integers(1, shape[axis] + 1))
    index = rng.permutation(shape[axis])[:count]
    if name in ("index_select", "index_add"):
        index = rng.integers(0, shape[axis], count)
    source = list(shape)
    source[axis] = count
    x = values(rng, shape, dtype)
    if name == "index_select":
        return Call(name, lambda m, x: m.index_select(x, axis, _long(m, index)), [x])
    if name == "index_fill":
        return Call(name, lambda m, x: m.index_fill(x, axis, _long(m, index), 2), [x])
    return Call(
        name,
        lambda m, x, s: getattr(m, name)(x, axis, _long(m, index), s),
        [x, values(rng, tuple(source), dtype)],
    )


def _flat_places(rng: Rng, shape: tuple[int, ...], name: str, dtype: str) -> Call:
    total = int(np.prod(shape))
    index = rng.permutation(total)[: int(rng.integers(1, total + 1))]
    x = values(rng, shape, dtype)
    if name == "take":
        return Call(name, lambda m, x: m.take(x, _long(m, index)), [x])
    return Call(
        name,
        lambda m, x, s: m.put(x, _long(m, index), s, accumulate=True),
        [x, values(rng, index.shape, dtype)],
    )


def _ordered(rng: Rng, shape: tuple[int, ...], name: str, dtype: str) -> Call:
    x = distinct(rng, shape, dtype)
    axis = int(rng.integers(-len(shape), len(shape)))
    k = int(rng.integers(0, shape[axis] + 2))
    largest = bool(rng.random() < 0.5)
    if name == "topk":
        return Call(f"topk {k}", lambda m, x: m.topk(x, k, axis, largest), [x])
    if name == "kthvalue":
        return Call(f"kthvalue {k}", lambda m, x: m.kthvalue(x, k, axis), [x])
    if name == "searchsorted":
        points = values(rng, (*shape[:-1], 3), dtype)
        return Call(
            name,
            lambda m, x, v: m.searchsorted(m.sort(x.detach())[0], v.detach(), right=largest),
            [x, points],
        )
    counts = {"return_inverse": largest, "return_counts": bool(rng.random() < 0.5)}
    dim = pick(rng, (None, axis))
    small = np.round(x / max(1, x.size / 3)).astype(dtype)
    return Call(
        f"{name} {counts} {dim}",
        lambda m, x: getattr(m, name)(x.detach(), dim=dim, **counts),
        [small],
    )


INDEXING: dict[str, Callable[..., Call]] = {
    **dict.fromkeys(("x[key]", "x[key] ", "x[key]  "), _get),
    "x[key] = v": _set,
    **dict.fromkeys(("x[mask]", "masked_select", "masked_fill", "masked_scatter"), _mask),
    **dict.fromkeys(("gather", "scatter", "scatter_add", "scatter_reduce"), _gather),
    **dict.fromkeys(("index_select", "index_add", "index_copy", "index_fill"), _slices),
    **dict.fromkeys(("take", "put"), _flat_places),
    **dict.fromkeys(("topk", "kthvalue", "searchsorted", "unique", "unique_consecutive"), _ordered),
}


@pytest.mark.parametrize(
    ("make", "count", "seed"),
    [(elementwise, 1200, 1), (reduction, 800, 2), (shapes, 2000, 3), (indexing, 2000, 4)],
)
def test_random_calls(make: Callable[[Rng], Call], count: int, seed: int) -> None:
    run(mt, torch, make, count, seed)
