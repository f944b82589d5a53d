"""Products over named or chosen axes: einsum and its relatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, DtypeError, ShapeError, describe
from . import linalg, primitive, reduction, shape
from .complex_numbers import conj
from .linalg import _matmul, autocast_operands
from .ordering import diagonal


def einsum(*args: Any) -> Any:
    """Sums products over the axes whose labels the output lacks.

    Args:
        args: An equation such as `"bij,bjk->bik"` and the operands (or a list of them), or
            operands and lists of numbers in turn, with those of the output last. `...` stands for
            any axes; a repeated label of one operand is a diagonal; without `->` the output has
            the labels that occur once, in order.

    Returns:
        A tensor with the axes that the output names.

    Raises:
        ArgumentError: The equation does not follow the rules.
        ShapeError: A label has two lengths.

    >>> import minitorch
    >>> minitorch.einsum("ij,j->i", minitorch.ones(2, 3), minitorch.ones(3)).tolist()
    [3.0, 3.0]
    """
    inputs, output, operands = _parsed(args)
    operands = list(autocast_operands(*operands))
    _check_dtypes(operands)
    terms = []
    for labels, x in zip(inputs, operands, strict=True):
        terms.append(_without_repeats(_numbered(labels, x), x))
    sizes = _sizes(terms)
    dots = sorted({n for labels, _ in terms for n in labels if n < 0})
    wanted = _output(inputs, output, dots)
    for n in wanted:
        if n not in sizes:
            raise ArgumentError(
                f"einsum: the output has the label {_shown(n)}, which no operand has. "
                "Every output label must occur in an input."
            )
    terms = [_unbroadcast(labels, x, sizes) for labels, x in terms]
    while len(terms) > 1:
        i, j = _cheapest(terms, wanted, sizes)
        b, a = terms.pop(j), terms.pop(i)
        kept = {*wanted, *(n for labels, _ in terms for n in labels)}
        terms.insert(i, _pair(a, b, kept))
    labels, x = terms[0]
    labels, x = _summed(labels, x, set(wanted))
    x = shape.permute(x, [labels.index(n) for n in wanted if n in labels])
    return x


def _parsed(args: tuple[Any, ...]) -> tuple[list[list[Any]], list[Any] | None, list[Any]]:
    """The labels of each operand, those of the output or None, and the operands."""
    if not args:
        raise ArgumentError("einsum: an equation and operands are needed. Got nothing.")
    if isinstance(args[0], str):
        return _parsed_text(args[0], _flat(args[1:]))
    operands, labels, output = list(args[0::2]), list(args[1::2]), None
    if len(args) % 2:
        output = [_number(n) for n in operands.pop()]
    return [[_number(n) for n in one] for one in labels], output, operands


def _flat(operands: Sequence[Any]) -> list[Any]:
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        return list(operands[0])
    return list(operands)


def _number(label: Any) -> Any:
    if label is not Ellipsis and not 0 <= label < 52:
        raise ArgumentError(f"einsum: labels in lists are 0 to 51, or ... . Got {label!r}.")
    return label


def _parsed_text(equation: str, operands: list[Any]) -> Any:
    left, arrow, right = equation.replace(" ", "").partition("->")
    inputs = [_letters(part, equation) for part in left.split(",")]
    if len(inputs) != len(operands):
        raise ArgumentError(
            f"einsum: the equation must name as many operands as are given. Got {equation!r} "
            f"({len(inputs)}) and {len(operands)} operands."
        )
    return inputs, _letters(right, equation) if arrow else None, operands


def _letters(text: str, equation: str) -> list[Any]:
    out: list[Any] = []
    for i, part in enumerate(text.split("...")):
        if i > 1:
            raise ArgumentError(f"einsum: '...' may stand once for each operand. Got {equation!r}.")
        if i:
            out.append(Ellipsis)
        for letter in part:
            if not (letter.isascii() and letter.isalpha()):
                raise ArgumentError(
                    f"einsum: labels are the letters a-z and A-Z. Got {letter!r} in {equation!r}."
                )
            code = ord(letter)
            out.append(code - 65 if code < 97 else code - 71)
    return out


def _shown(n: int) -> str:
    return "..." if n < 0 else repr(chr(n + 65 if n < 26 else n + 71))


def _check_dtypes(operands: list[Any]) -> None:
    for x in operands:
        if not isinstance(x, primitive.Tensor):
            raise DtypeError(f"einsum: operands must be tensors. Got {describe(x)}.")
        if x._array.dtype != operands[0]._array.dtype:
            raise DtypeError(
                f"einsum: operands must have one dtype. Got {describe(operands[0])} and "
                f"{describe(x)}. Convert one with .to(dtype)."
            )
    primitive.check_same_device("einsum", operands)


def _numbered(labels: list[Any], x: Any) -> list[int]:
    """One number per axis; the axes of the ellipsis get negative ones from the right."""
    named = sum(n is not Ellipsis for n in labels)
    free = x.ndim - named
    if free < 0 or (free and Ellipsis not in labels):
        raise ShapeError(
            f"einsum: each axis needs a label. Got {describe(x)} with {named} labels. "
            "Add labels, or ... for the rest."
        )
    out: list[int] = []
    for n in labels:
        out += range(-free, 0) if n is Ellipsis else [n]
    return out


def _without_repeats(labels: list[int], x: Any) -> tuple[list[int], Any]:
    """The diagonals over labels that occur twice."""
    for n in dict.fromkeys(labels):
        while labels.count(n) > 1:
            i = labels.index(n)
            j = labels.index(n, i + 1)
            if x.shape[i] != x.shape[j]:
                raise ShapeError(
                    f"einsum: a repeated label must have one length. Got {_shown(n)} with "
                    f"{x.shape[i]} and {x.shape[j]} in {describe(x)}."
                )
            x = diagonal(x, 0, i, j)
            labels = [m for k, m in enumerate(labels) if k not in (i, j)] + [n]
    return labels, x


def _sizes(terms: list[tuple[list[int], Any]]) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for labels, x in terms:
        for n, size in zip(labels, x.shape, strict=True):
            known = sizes.get(n, 1)
            if size not in (1, known) and known != 1:
                raise ShapeError(
                    f"einsum: each label must have one length. Got {_shown(n)} with {known} and "
                    f"{size}, the latter in {describe(x)}."
                )
            sizes[n] = size if known == 1 else known
    return sizes


def _output(inputs: list[list[Any]], output: list[Any] | None, dots: list[int]) -> list[int]:
    if output is None:
        counted = [n for labels in inputs for n in labels if n is not Ellipsis]
        return dots + sorted(n for n in set(counted) if counted.count(n) == 1)
    named = [n for n in output if n is not Ellipsis]
    if len(set(named)) != len(named):
        raise ArgumentError(
            "einsum: a label may stand once in the output. Use diagonal or diag_embed for more."
        )
    wanted: list[int] = []
    for n in output:
        wanted += dots if n is Ellipsis else [n]
    return wanted


def _unbroadcast(labels: list[int], x: Any, sizes: dict[int, int]) -> tuple[list[int], Any]:
    """Without the axes of length 1 that are longer elsewhere: a factor constant along them."""
    gone = [i for i, n in enumerate(labels) if x.shape[i] == 1 != sizes[n]]
    kept = [n for i, n in enumerate(labels) if i not in gone]
    return kept, (shape.squeeze(x, gone) if gone else x)


def _cheapest(terms: list[Any], wanted: list[int], sizes: dict[int, int]) -> tuple[int, int]:
    """The pair whose product has the fewest elements; for two operands, those two."""
    best = (math.inf, 0, 1)
    for i in range(len(terms)):
        for j in range(i + 1, len(terms)):
            others = [labels for k, (labels, _) in enumerate(terms) if k not in (i, j)]
            kept = {*wanted, *(n for labels in others for n in labels)}
            together = {*terms[i][0], *terms[j][0]}
            cost = math.prod(sizes[n] for n in together & kept)
            best = min(best, (cost, i, j))
    return best[1], best[2]


def _summed(labels: list[int], x: Any, kept: set[int]) -> tuple[list[int], Any]:
    """Sums over the labels that nobody needs."""
    axes = [i for i, n in enumerate(labels) if n not in kept]
    if not axes:
        return labels, x
    dtype = x.dtype
    return [n for n in labels if n in kept], reduction.sum(x, axes, dtype=dtype)


def _pair(a: Any, b: Any, kept: set[int]) -> tuple[list[int], Any]:
    """The product of two operands over the labels that only they have, as a matrix product."""
    (la, xa), (lb, xb) = a, b
    la, xa = _summed(la, xa, kept | set(lb))
    lb, xb = _summed(lb, xb, kept | set(la))
    both = [n for n in la if n in lb]
    batch = [n for n in both if n in kept]
    inner = [n for n in both if n not in kept]
    left = [n for n in la if n not in lb]
    right = [n for n in lb if n not in la]
    size = {**dict(zip(lb, xb.shape, strict=True)), **dict(zip(la, xa.shape, strict=True))}

    def grouped(x: Any, labels: list[int], *groups: list[int]) -> Any:
        x = shape.permute(x, [labels.index(n) for group in groups for n in group])
        lengths = [math.prod(size[n] for n in group) for group in groups[1:]]
        return shape.reshape(x, [size[n] for n in groups[0]] + lengths)

    out = _matmul(grouped(xa, la, batch, left, inner), grouped(xb, lb, batch, inner, right))
    labels = batch + left + right
    return labels, shape.reshape(out, [size[n] for n in labels])


# ---- tensordot and kin ---------------------------------------------------------------------------


def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Sums products over the last `dims` axes of `a` and the first of `b`, or over named axes.

    Args:
        a, b: Tensors of one dtype.
        dims: A number of axes, or two lists of axes.

    Raises:
        ShapeError: The axes have different lengths, or there are too few.
    """
    if isinstance(dims, primitive.Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot: dims must be from 0 to {min(a.ndim, b.ndim)} for {describe(a)} and "
                f"{describe(b)}. Got {dims}."
            )
        dims = (range(a.ndim - dims, a.ndim), range(dims))
    first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
    first = [shape.axis_of("tensordot", a.ndim, d) for d in first]
    second = [shape.axis_of("tensordot", b.ndim, d) for d in second]
    if [a.shape[d] for d in first] != [b.shape[d] for d in second]:
        raise ShapeError(
            f"tensordot: the axes that are summed must be as long in both. Got {describe(a)} with "
            f"{first} and {describe(b)} with {second}."
        )
    left = [d for d in range(a.ndim) if d not in first]
    right = [d for d in range(b.ndim) if d not in second]
    inner = math.prod(a.shape[d] for d in first)
    rows = math.prod(a.shape[d] for d in left)
    columns = math.prod(b.shape[d] for d in right)
    out = linalg.matmul(
        shape.reshape(shape.permute(a, left + first), (rows, inner)),
        shape.reshape(shape.permute(b, second + right), (inner, columns)),
    )
    return shape.reshape(out, [a.shape[d] for d in left] + [b.shape[d] for d in right])


def inner(input: Any, other: Any) -> Any:
    """The sums of products over the last axes; a 0-d operand multiplies."""
    if not input.ndim or not other.ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise ShapeError(
            f"inner: the last axes must be as long. Got {describe(input)} and {describe(other)}."
        )
    return tensordot(input, other, ([-1], [-1]))


def vdot(input: Any, other: Any) -> Any:
    """`Σ conj(input) other` of two vectors."""
    return linalg.dot(conj(input), other)


def vecdot(x: Any, y: Any, *, dim: int = -1) -> Any:
    """`Σ conj(x) y` along `dim`, broadcast."""
    return reduction.sum(conj(x) * y, dim)


def kron(input: Any, other: Any) -> Any:
    """The Kronecker product: every element of `input` times all of `other`."""
    n = max(input.ndim, other.ndim)
    a, b = shape.atleast(input, n), shape.atleast(other, n)
    spread_a = shape.reshape(a, [m for size in a.shape for m in (size, 1)])
    spread_b = shape.reshape(b, [m for size in b.shape for m in (1, size)])
    sizes = [p * q for p, q in zip(a.shape, b.shape, strict=True)]
    return shape.reshape(spread_a * spread_b, sizes)


def _scaled(input: Any, product: Any, beta: Any, alpha: Any) -> Any:
    product = product if alpha == 1 else product * alpha
    if input._array.dtype != product._array.dtype:
        (input,) = linalg.autocast_operands(input)
    return product if beta == 0 else product + (input if beta == 1 else input * beta)


def addmv(input: Any, mat: Any, vec: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """`beta * input + alpha * mat @ vec`."""
    return _scaled(input, linalg.mv(mat, vec), beta, alpha)


def addr(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """`beta * input + alpha * outer(vec1, vec2)`."""
    return _scaled(input, linalg.outer(vec1, vec2), beta, alpha)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """`beta * input + alpha * Σ batch1[i] @ batch2[i]`."""
    return _scaled(input, reduction.sum(linalg.bmm(batch1, batch2), 0), beta, alpha)


# ---- chains --------------------------------------------------------------------------------------


def multi_dot(tensors: Sequence[Any]) -> Any:
    """The product of a chain of matrices in the cheapest order; the ends may be vectors.

    Args:
        tensors: f[k] or f[n, k], matrices, and f[k, m] or f[k].

    Raises:
        ShapeError: Fewer than two operands, or other ranks.

    Source: Cormen and others, "Introduction to Algorithms", 15.2 Matrix-chain multiplication, 2009.
    """
    chain = list(tensors)
    if len(chain) < 2:
        raise ShapeError(f"multi_dot: at least two operands are needed. Got {len(chain)}.")
    for i, x in enumerate(chain):
        if x.ndim != 2 and not (x.ndim == 1 and i in (0, len(chain) - 1)):
            raise ShapeError(
                f"multi_dot: operands must be matrices, the first and last may be vectors. "
                f"Got {describe(x)} at position {i}."
            )
    row, column = chain[0].ndim == 1, chain[-1].ndim == 1
    if row:
        chain[0] = shape.unsqueeze(chain[0], 0)
    if column:
        chain[-1] = shape.unsqueeze(chain[-1], 1)
    out = _in_order(chain, _best_splits([x.shape[0] for x in chain] + [chain[-1].shape[1]]))
    gone = ([0] if row else []) + ([1] if column else [])
    return shape.squeeze(out, gone) if gone else out


def _best_splits(sizes: list[int]) -> dict[tuple[int, int], int]:
    """Where to split each part of the chain, from the costs of all shorter parts."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split


def _in_order(chain: list[Any], split: dict[tuple[int, int], int]) -> Any:
    def part(i: int, j: int) -> Any:
        if i == j:
            return chain[i]
        k = split[i, j]
        return linalg.matmul(part(i, k), part(k + 1, j))

    return part(0, len(chain) - 1)


def chain_matmul(*matrices: Any) -> Any:
    """`multi_dot` of the operands."""
    return multi_dot(_flat(matrices)) if len(_flat(matrices)) > 1 else _flat(matrices)[0]


ger = linalg.outer
