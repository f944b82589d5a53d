"""vmap: a function of one sample becomes a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .. import pytree, random
from ..autograd import no_grad
from ..errors import ArgumentError, GraphError, ShapeError, describe
from ..ops.creation import zeros
from ..ops.joining import stack, unbind
from ..tensor import Tensor

RANDOMNESS = ("error", "same", "different")


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies `func` to each slice of its arguments and stacks the results.

    `func` runs once for each slice, so it may branch on values and call `.item()`; the gain over a
    loop is the spelling. Results are differentiable, and `vmap(grad(f))` gives a gradient per
    sample.

    Args:
        func: From tensors or trees of them to a tensor or a tree of them.
        in_dims: The batch axis of each argument, None for one that all slices share; one number
            for all of them, or a tree that fits the arguments and may stop above the leaves.
        out_dims: Where the batch axis of each result shall be, in the same way.
        randomness: What happens where `func` draws random numbers: `"error"`, `"same"` numbers in
            every slice, or `"different"` ones. Draws from a Generator of one's own always differ.
        chunk_size: Accepted for PyTorch's signature; slices are computed one by one.

    Returns:
        The function of a batch. Every slice gets the same keyword arguments.

    Raises:
        ArgumentError: `in_dims` or `out_dims` do not fit, or there is nothing to batch.
        ShapeError: The batch axes have different lengths.
        GraphError: `func` drew random numbers under `randomness="error"`.

    >>> mt.vmap(lambda row: row.sum())(mt.ones(2, 3)).tolist()
    [3.0, 3.0]
    """
    if randomness not in RANDOMNESS:
        raise ArgumentError(f"vmap: randomness must be one of {RANDOMNESS}. Got {randomness!r}.")
    if chunk_size is not None and chunk_size < 1:
        raise ArgumentError(f"vmap: chunk_size must be at least 1. Got {chunk_size}.")

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = pytree.flatten((args, kwargs))
        dims = _in_dims(in_dims, args, kwargs, leaves)
        size = _batch_size(leaves, dims)
        split = [
            [leaf] * max(size, 1) if dim is None else _slices(leaf, dim)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]

        def run(i: int) -> Any:
            one_args, one_kwargs = pytree.unflatten([part[i] for part in split], structure)
            return func(*one_args, **one_kwargs)

        if not size:
            return _empty(run, out_dims)
        results = _Randomness(randomness).run_all(run, size)
        return _stacked(results, out_dims)

    return call


class _Randomness:
    """Runs the slices and watches or resets the random streams between them."""

    def __init__(self, mode: str) -> None:
        self.mode = mode

    def run_all(self, run: Callable[[int], Any], size: int) -> list[Any]:
        """The results of all slices."""
        before = random.state_dict()
        results = []
        for i in range(size):
            if i and self.mode == "same":
                random.load_state_dict(before)
            results.append(run(i))
            if not i and self.mode == "error" and random.state_dict() != before:
                random.load_state_dict(before)
                raise GraphError(
                    "vmap: the function drew random numbers, and it was not said whether slices "
                    'shall share them. Pass randomness="different" or randomness="same".'
                )
        return results


def _in_dims(
    in_dims: Any, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]
) -> list[int | None]:
    """The batch axis of every leaf of the arguments, at least 0, or None."""
    _, of_args = pytree.flatten(args)
    _, of_kwargs = pytree.flatten(kwargs)
    prefix = in_dims if isinstance(in_dims, int | tuple | list) else (in_dims,) * len(args)
    given = pytree.spread(tuple(prefix) if isinstance(prefix, list) else prefix, of_args)
    if given is None:
        raise ArgumentError(
            f"vmap: in_dims must be a number, or a tree that fits the {len(args)} positional "
            f"arguments. Got {in_dims!r}."
        )
    axes: list[int | None] = []
    for leaf, dim in zip(leaves, [*given, *[None] * of_kwargs.leaves], strict=True):
        if dim is None:
            axes.append(None)
            continue
        if not isinstance(leaf, Tensor) or not isinstance(dim, int):
            raise ArgumentError(
                f"vmap: only tensors have a batch axis, and it must be a number. Got {dim!r} for a "
                f"{type(leaf).__name__}. Give None for what all slices share."
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ShapeError(
                f"vmap: the batch axis must exist. Got in_dim {dim} for {describe(leaf)}."
            )
        axes.append(dim % leaf.ndim)
    return axes


def _batch_size(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = [x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None]
    if not sizes:
        raise ArgumentError(
            "vmap: at least one argument must have a batch axis. Got none: in_dims are all None."
        )
    if len(set(sizes)) > 1:
        raise ShapeError(f"vmap: all batch axes must have one length. Got {sizes}. Check in_dims.")
    return int(sizes[0])


def _slices(leaf: Tensor, dim: int) -> list[Tensor]:
    if leaf.shape[dim]:
        return list(unbind(leaf, dim))
    shape = [n for i, n in enumerate(leaf.shape) if i != dim]
    return [zeros(shape, dtype=leaf.dtype, device=leaf.device)]


def _out_dims(out_dims: Any, structure: pytree.Structure) -> list[Any]:
    given = pytree.spread(out_dims, structure)
    if given is None:
        raise ArgumentError(
            "vmap: out_dims must be a number, or a tree that fits what the function returns. "
            f"Got {out_dims!r}."
        )
    return given


def _leaves(result: Any) -> tuple[list[Tensor], pytree.Structure]:
    leaves, structure = pytree.flatten(result)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ArgumentError(
                f"vmap: the function must return tensors. Got {type(leaf).__name__}."
            )
    return leaves, structure


def _stacked(results: list[Any], out_dims: Any) -> Any:
    columns, structure = [], None
    for result in results:
        leaves, form = _leaves(result)
        if structure is not None and form != structure:
            raise ArgumentError(
                "vmap: every slice must give a result of the same structure. "
                "Return the same tensors whatever the values are."
            )
        structure = form
        columns.append(leaves)
    assert structure is not None
    dims = _out_dims(out_dims, structure)
    joined = [
        parts[0] if dim is None else stack(parts, dim)
        for parts, dim in zip(zip(*columns, strict=True), dims, strict=True)
    ]
    return pytree.unflatten(joined, structure)


def _empty(run: Callable[[int], Any], out_dims: Any) -> Any:
    """The result for no slices, whose shape a run on zeros shows."""
    with no_grad(), random.fork_rng():
        leaves, structure = _leaves(run(0))
    dims = _out_dims(out_dims, structure)
    out = []
    for leaf, dim in zip(leaves, dims, strict=True):
        shape = list(leaf.shape)
        if dim is not None:
            shape.insert(dim if dim >= 0 else dim + leaf.ndim + 1, 0)
        out.append(zeros(shape, dtype=leaf.dtype, device=leaf.device))
    return pytree.unflatten(out, structure)
