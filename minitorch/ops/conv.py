"""Convolution and its transpose: `y[n,o,l] = Σ_k w[o,k] · cols[n,k,l]`, cols the patches of x.

The transpose, `y = fold(wᵀ x)`, is the gradient of a convolution with respect to its input; each is
made of the other's parts. On the CPU float32 has kernels that make no patches (`correlate`), and
images convolved channel by channel or to few channels have others (`planewise`). Otherwise the
patches of a few images are laid out as one matrix that stays in the cache, and multiplied once;
they are made again for the backward pass instead of being kept.
Shapes: x_NC… and w_OC… with any number of axes behind the channels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from .. import backend
from ..autograd.accumulation import grow
from ..kernels import load_for
from ..kernels.conv_plan import SMALL, direct_family
from .fused import Fused
from .unfold import Window, fold_columns, padded, sum_taps, taps, unfold_columns
from .wide import wide

_TILE_BYTES = 4 << 20
_FEW = 6  # channels of a result up to which it is computed plane by plane
_FAMILIES = {2: "conv", 3: "volume"}  # compiled bodies by the number of axes


def _definition(x: Any, weight: Any, bias: Any = None, *, window: Window, groups: int) -> Any:
    n, o = x.shape[0], weight.shape[0]
    outputs = window.output(*x.shape[2:])
    w = _grouped(weight, groups)
    cols = unfold_columns(x, window=window).reshape(n, groups, w.shape[2], math.prod(outputs))
    y = (w @ cols).reshape(n, o, *outputs)
    return y if bias is None else y + _per_channel(bias, len(outputs))


def _per_channel(bias: Any, axes: int) -> Any:
    return bias.reshape(-1, *[1] * axes)


def _grouped(weight: Any, groups: int) -> Any:
    """The weight as a matrix for each group, w_GOK."""
    o, *rest = weight.shape
    return weight.reshape(groups, o // groups, math.prod(rest))


def _kernels(x: Any, window: Window, outputs: tuple[int, ...]) -> Any:
    """The compiled bodies, where there is enough to do for several threads."""
    values = x.shape[0] * x.shape[1] * math.prod(window.kernel) * math.prod(outputs)
    return load_for(_FAMILIES[len(outputs)], x, least=0) if values >= SMALL else None


def _planewise(a: Any, weight: Any, groups: int, columns: int) -> Any:
    """The compiled bodies for images convolved channel by channel, or to few channels.

    `columns`: channels of the result.
    """
    alone = groups > 1 and weight.shape[1] == 1
    fits = weight.ndim == 4 and weight.size and (alone or (groups == 1 and columns <= _FEW))
    return load_for("planewise", a, weight) if fits else None


def _direct(a: Any, weight: Any, window: Window, groups: int, shape: tuple[int, ...]) -> Any:
    """The compiled bodies for float32 images of that shape; `a`: these, or a gradient."""
    if not weight.size:
        return None
    family = direct_family(shape, weight.shape, window, groups)
    return load_for(family, a, weight, least=0, kinds="f") if family else None


def _patches(x: Any, window: Window, outputs: tuple[int, ...]) -> Any:
    """The patches of some images as c·k rows of n·l values."""
    n, c = x.shape[:2]
    kernels = _kernels(x, window, outputs)
    if kernels is not None:
        return kernels.patches(x, window, *outputs)
    source = padded(x, window)
    cols = backend.namespace(x).empty((c, *window.kernel, n, *outputs), x.dtype)
    for place, under in taps(window, outputs):
        cols[(slice(None), *place)] = source[(..., *under)].swapaxes(0, 1)
    return cols.reshape(c * math.prod(window.kernel), n * math.prod(outputs))


def _add_patches(out: Any, cols: Any, window: Window, outputs: tuple[int, ...]) -> None:
    """Writes the sums of patches to the images `out`, which are zero before."""
    kernels = _kernels(out, window, outputs)
    if kernels is not None:
        kernels.add_patches(out, cols, window, *outputs)
        return
    n, c = out.shape[:2]
    axes = tuple(range(1, 1 + len(outputs)))
    cols = cols.reshape(c, *window.kernel, n, *outputs)
    cols = cols.transpose(1 + len(axes), 0, *axes, *range(2 + len(axes), cols.ndim))
    out[...] = sum_taps(cols, (n, c), window, tuple(out.shape[2:]))


def _tiles(x: Any, weight: Any, groups: int, size: int) -> Iterator[slice]:
    """Ranges of images whose patches fit the cache."""
    row_bytes = max(1, weight[:1].size * groups * size * x.dtype.itemsize)
    step = max(1, _TILE_BYTES // row_bytes)
    for start in range(0, x.shape[0], step):
        yield slice(start, start + step)


def _pointwise(window: Window) -> bool:
    """True where the patches are the image itself."""
    return (
        set(window.kernel) == {1}
        and set(window.stride) == {1}
        and not any(window.low + window.high)
    )


def _apply(x: Any, weight: Any, bias: Any, window: Window, groups: int) -> Any:
    """The convolution of float32 or wider arrays."""
    if bias is not None and bias.dtype != x.dtype:
        bias = bias.astype(x.dtype)
    kernels = _planewise(x, weight, groups, len(weight))
    if kernels is None:
        kernels = _direct(x, weight, window, groups, x.shape)
    if kernels is not None:
        return kernels.forward(x, weight, bias, window, groups)
    return _with_bias(_products(x, weight, window, groups), bias)


def _products(x: Any, weight: Any, window: Window, groups: int) -> Any:
    outputs = window.output(*x.shape[2:])
    xp, (n, o) = backend.namespace(x), (x.shape[0], weight.shape[0])
    w, size = _grouped(weight, groups), math.prod(outputs)
    if _pointwise(window):
        y = xp.matmul(w, x.reshape(n, groups, w.shape[2], size))
        return y.reshape(n, o, *outputs)
    y = xp.empty((n, o, *outputs), x.dtype)
    for tile in _tiles(x, weight, groups, size):
        cols = _patches(x[tile], window, outputs).reshape(groups, w.shape[2], -1)
        y[tile] = xp.matmul(w, cols).reshape(o, -1, *outputs).swapaxes(0, 1)
    return y


def _input_gradient(g: Any, weight: Any, window: Window, groups: int, size: tuple[int, ...]) -> Any:
    """The gradient of images of the given size, from that of the outputs."""
    n, o, *outputs = g.shape
    c = weight.shape[1] * groups
    kernels = _planewise(g, weight, groups, c)
    if kernels is None:
        kernels = _direct(g, weight, window, groups, (n, c, *size))
    if kernels is not None:
        return kernels.input_gradient(g, weight, window, groups, size)
    xp, w = backend.namespace(g), _grouped(weight, groups).swapaxes(1, 2)
    if _pointwise(window):
        columns = g.reshape(n, groups, o // groups, math.prod(outputs))
        return xp.matmul(w, columns).reshape(n, c, *size)
    dx = xp.zeros((n, c, *size), g.dtype)
    for tile in _tiles(g, weight, groups, math.prod(outputs)):
        _add_patches(dx[tile], xp.matmul(w, _columns(g[tile], groups)), window, tuple(outputs))
    return dx


def _sum_of_gradients(g: Any, weight: Any, window: Window, groups: int, onto: Any) -> Any:
    """The gradient of images with `onto`, what has flowed into them before, in a new array."""
    given, size = (window, groups), tuple(onto.shape[2:])
    if onto.dtype is g.dtype and direct_family(onto.shape, weight.shape, *given) == "correlate":
        if _planewise(g, weight, groups, onto.shape[1]) is None:
            kernels = _direct(g, weight, *given, onto.shape)
            if kernels is not None:
                return kernels.input_gradient(g, weight, *given, size, onto)
    dx = _input_gradient(g, weight, *given, size).astype(onto.dtype, copy=False)
    return grow(dx, onto)


def _weight_gradient(g: Any, x: Any, weight: Any, window: Window, groups: int) -> Any:
    """The gradient of the weight, from those of the outputs and the images."""
    kernels = _planewise(g, weight, groups, _FEW + 1)
    dw = None if kernels is None else kernels.weight_gradient(g, x, window)
    if dw is not None:
        return dw
    kernels = _direct(x, weight, window, groups, x.shape)
    if kernels is not None:
        return kernels.weight_gradient(g, x, weight, window, groups)
    xp, (n, o), outputs = backend.namespace(g), g.shape[:2], tuple(g.shape[2:])
    w = _grouped(weight, groups)
    dw = xp.zeros(w.shape, w.dtype)
    if _pointwise(window):
        size = math.prod(outputs)
        g = g.reshape(n, groups, o // groups, size)
        columns = x.reshape(n, groups, w.shape[2], size).swapaxes(2, 3)
        for i in range(n):
            dw += xp.matmul(g[i], columns[i])
        return dw.reshape(weight.shape)
    for tile in _tiles(x, weight, groups, math.prod(outputs)):
        cols = _patches(x[tile], window, outputs).reshape(groups, w.shape[2], -1)
        dw += xp.matmul(_columns(g[tile], groups), cols.swapaxes(1, 2))
    return dw.reshape(weight.shape)


def _columns(g: Any, groups: int) -> Any:
    """g_NO… as a matrix for each group, with a column for each place of each image."""
    columns = backend.namespace(g).ascontiguousarray(g.swapaxes(0, 1))
    return columns.reshape(groups, g.shape[1] // groups, -1)


def _with_bias(y: Any, bias: Any) -> Any:
    if bias is not None:
        y += _per_channel(bias, y.ndim - 2).astype(y.dtype, copy=False)
    return y


def _cast_back(grads: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    pairs = zip(grads, inputs, strict=True)
    return [d if d is None or d.dtype is a.dtype else d.astype(a.dtype) for d, a in pairs]


def _bias_gradient(g: Any) -> Any:
    kernels = load_for("correlate", g, kinds="f") if g.size >= SMALL else None
    if kernels is not None:
        return kernels.bias_gradient(g)
    return g.sum((0, *range(2, g.ndim)))


def _forward(x: Any, weight: Any, bias: Any, *, window: Window, groups: int) -> Any:
    y = _apply(wide(x), wide(weight), bias, window, groups)
    return y if y.dtype is x.dtype else y.astype(x.dtype), ()


def _backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    weight: Any,
    bias: Any,
    *,
    window: Window,
    groups: int,
    onto: Any = None,
) -> list[Any]:
    g, inputs, (x, weight) = wide(g), (x, weight, bias), (wide(x), wide(weight))
    if onto is not None:
        dx = _sum_of_gradients(g, weight, window, groups, onto)
    else:
        dx = _input_gradient(g, weight, window, groups, tuple(x.shape[2:])) if needs[0] else None
    dw = _weight_gradient(g, x, weight, window, groups) if needs[1] else None
    return _cast_back((dx, dw, _bias_gradient(g) if needs[2] else None), inputs)


def _supports(x: Any, weight: Any, bias: Any, **options: Any) -> bool:
    return x.dtype == weight.dtype


convolution = Fused(
    _definition, _forward, _backward, supports=_supports, adds_onto=True, bilinear=True
)
convolution.name = "convolution"


def _transposed_definition(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    window: Window,
    groups: int,
    size: tuple[int, ...],
) -> Any:
    n, c = x.shape[:2]
    w = _grouped(weight, groups).transpose(1, 2)
    cols = w @ x.reshape(n, groups, c // groups, math.prod(x.shape[2:]))
    channels = weight.shape[1] * groups
    cols = cols.reshape(n, channels, math.prod(window.kernel), cols.shape[3])
    y = fold_columns(cols, window=window, size=size)
    return y if bias is None else y + _per_channel(bias, len(size))


def _transposed_forward(
    x: Any, weight: Any, bias: Any, *, window: Window, groups: int, size: tuple[int, ...]
) -> Any:
    y = _input_gradient(wide(x), wide(weight), window, groups, size)
    return _with_bias(y, bias).astype(x.dtype, copy=False), ()


def _transposed_backward(
    g: Any,
    needs: Sequence[bool],
    residuals: tuple[Any, ...],
    x: Any,
    weight: Any,
    bias: Any,
    *,
    window: Window,
    groups: int,
    size: tuple[int, ...],
) -> list[Any]:
    g, inputs, (x, weight) = wide(g), (x, weight, bias), (wide(x), wide(weight))
    dx = _apply(g, weight, None, window, groups) if needs[0] else None
    dw = _weight_gradient(x, g, weight, window, groups) if needs[1] else None
    return _cast_back((dx, dw, _bias_gradient(g) if needs[2] else None), inputs)


transposed_convolution = Fused(
    _transposed_definition, _transposed_forward, _transposed_backward, supports=_supports
)
transposed_convolution.name = "transposed_convolution"
"""`transposed_convolution(x, weight, bias, *, window, groups, size)`: the images of the given size
whose convolution by `window` has the gradient x; weight_OC… as that convolution has it."""
