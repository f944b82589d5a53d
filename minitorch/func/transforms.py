"""Gradients and Jacobians of functions, as functions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import pytree
from ..autograd import enable_grad, engine, is_grad_enabled
from ..autograd.node import Node
from ..errors import ArgumentError, GraphError, ShapeError, describe
from ..ops.creation import zeros, zeros_like
from ..ops.joining import stack
from ..ops.primitive import edge_of
from ..tensor import Tensor


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that computes the gradient of `func`.

    Args:
        func: Gives a one-element tensor, or with `has_aux` the pair of one and anything else.
        argnums: Which argument, a tensor or a tree of them, the gradient is with respect to.
        has_aux: Whether `func` gives a pair.

    Returns:
        A function of the same arguments that gives the gradient with the structure of the
        argument (a tuple for several), or the pair of it and the anything.

    Raises:
        ShapeError: The result of `func` has more than one element.

    >>> mt.func.grad(lambda x: (x**3).sum())(mt.tensor([2.0])).tolist()
    [12.0]
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return call


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """The function that gives the pair of the gradient and the value of `func`; see `grad`."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorded = is_grad_enabled()
        with enable_grad():
            args, inputs, structure = _tracked("grad", args, argnums)
            value, aux = _with_aux(func(*args, **kwargs), has_aux)
            if not isinstance(value, Tensor) or value.numel() != 1:
                got = describe(value) if isinstance(value, Tensor) else type(value).__name__
                raise ShapeError(
                    f"grad: the function must return a one-element tensor. Got {got}. "
                    "Sum or average its result, or use jacrev."
                )
            keep = recorded and _has_other_origins([value], inputs)
            found = _pull([value], inputs, None, keep, retain=keep)
        result = pytree.unflatten(found, structure)
        if not keep:
            value, aux = _detached(value), _detached(aux)
        return result, (value, aux) if has_aux else value

    return call


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """The value of `func` and the function that pulls gradients of it back to `primals`.

    Args:
        func: From tensors or trees of them to tensors or trees of them.
        primals: Its arguments.
        has_aux: Whether `func` gives the pair of its value and anything else.

    Returns:
        `(value, pull)` or `(value, pull, anything)`; `pull(cotangents)` gives one gradient for
        each primal.
    """
    recorded = is_grad_enabled()
    with enable_grad():
        args, inputs, structure = _tracked("vjp", primals, tuple(range(len(primals))))
        value, aux = _with_aux(func(*args), has_aux)
        outputs, shape = _tensors("vjp", value)
        keep = recorded and _has_other_origins(outputs, inputs)

    def pull(*cotangents: Any) -> Any:
        given, form = pytree.flatten(cotangents[0] if len(cotangents) == 1 else cotangents)
        if form != shape:
            raise ArgumentError(
                "vjp: the cotangents must have the structure of the value. "
                f"Got {len(given)} for {len(outputs)} tensors."
            )
        create = is_grad_enabled() and (keep or any(g.requires_grad for g in given))
        return pytree.unflatten(_pull(outputs, inputs, given, create, retain=True), structure)

    shown = value if keep else _detached(value)
    return (shown, pull, aux if keep else _detached(aux)) if has_aux else (shown, pull)


def jvp(
    func: Callable[..., Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> Any:
    """The value of `func` at `primals` and its derivative along `tangents`.

    It is computed by two backward passes, so its cost does not depend on the number of inputs.

    Args:
        func: From tensors or trees of them to tensors or trees of them.
        primals: Its arguments.
        tangents: The direction, with the structure of `primals`.
        strict: Raise where a result does not depend on the inputs, instead of giving 0.
        has_aux: Whether `func` gives the pair of its value and anything else.

    Returns:
        `(value, derivative)`, or `(value, derivative, anything)`.
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise ArgumentError(
            "jvp: primals and tangents must be tuples, one entry per argument. "
            f"Got {type(primals).__name__} and {type(tangents).__name__}."
        )
    value, push, aux, keep = _pushing(func, primals, has_aux, strict)
    derivative = push(*tangents)
    shown = value if keep else _detached(value)
    return (shown, derivative, aux) if has_aux else (shown, derivative)


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of `func` and the function `jvp(*tangents)` at `primals`; computes `func` once."""
    value, push, _, keep = _pushing(func, primals, False, False)
    return (value if keep else _detached(value)), push


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that computes the Jacobian of `func`, one backward pass for each output element.

    Args:
        func: From tensors or trees of them to tensors or trees of them.
        argnums: Which arguments the Jacobian is with respect to.
        has_aux: Whether `func` gives the pair of its value and anything else.
        chunk_size: Accepted for PyTorch's signature.

    Returns:
        A function that gives, for each output, for each argument, a tensor of the shape of the
        output followed by that of the argument.
    """

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        recorded = is_grad_enabled()
        with enable_grad():
            args, inputs, structure = _tracked("jacrev", args, argnums)
            value, aux = _with_aux(func(*args, **kwargs), has_aux)
            outputs, shape = _tensors("jacrev", value)
            keep = recorded and _has_other_origins(outputs, inputs)
            found = [pytree.unflatten(_rows(output, inputs, keep), structure) for output in outputs]
        result = pytree.unflatten(found, shape)
        return (result, aux if keep else _detached(aux)) if has_aux else result

    return call


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """The function that computes the Jacobian of `func`, one pass for each input element.

    Args:
        func: As for `jacrev`.
        argnums: As for `jacrev`.
        has_aux: As for `jacrev`.
        randomness: Accepted for PyTorch's signature: `func` runs once here.

    Returns:
        As for `jacrev`.
    """

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        places = _places("jacfwd", args, argnums)
        chosen = tuple(args[i] for i in places)

        def of_chosen(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(places, values, strict=True):
                full[i] = value
            return func(*full, **kwargs)

        value, push, aux, _ = _pushing(of_chosen, chosen, has_aux, False)
        leaves, structure = pytree.flatten(chosen)
        columns = [_columns(push, leaves, i, structure) for i in range(len(leaves))]
        _, shape = pytree.flatten(value)
        per_output = [pytree.unflatten(list(row), structure) for row in zip(*columns, strict=True)]
        if isinstance(argnums, int):
            per_output = [row[0] for row in per_output]
        result = pytree.unflatten(per_output, shape)
        return (result, aux) if has_aux else result

    return call


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """The function that computes the second derivatives of `func`: `jacfwd(jacrev(func))`."""
    return jacfwd(jacrev(func, argnums), argnums)


def _places(name: str, args: tuple[Any, ...], argnums: int | tuple[int, ...]) -> tuple[int, ...]:
    wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    for i in wanted:
        if not isinstance(i, int) or not -len(args) <= i < len(args):
            raise ArgumentError(
                f"{name}: argnums must name positional arguments. Got {argnums} for {len(args)} "
                "arguments."
            )
    return tuple(i % len(args) for i in wanted)


def _tracked(
    name: str, args: tuple[Any, ...], argnums: int | tuple[int, ...]
) -> tuple[tuple[Any, ...], list[Tensor], pytree.Structure]:
    """The arguments with fresh tensors in the chosen places, those tensors, and their structure."""
    places = _places(name, args, argnums)
    chosen = args[places[0]] if isinstance(argnums, int) else tuple(args[i] for i in places)
    leaves, structure = pytree.flatten(chosen)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ArgumentError(
                f"{name}: the arguments to differentiate must be tensors or trees of them. "
                f"Got {type(leaf).__name__}. Choose other argnums, or convert it."
            )
    inputs = [fresh(leaf) for leaf in leaves]
    rebuilt = pytree.unflatten(list(inputs), structure)
    full = list(args)
    for i, value in zip(places, (rebuilt,) if isinstance(argnums, int) else rebuilt, strict=True):
        full[i] = value
    return tuple(full), inputs, structure


def fresh(t: Tensor) -> Tensor:
    """A tensor of its own with the values of `t` that requires grad and keeps the history."""
    return t.view_as(t) if t.requires_grad else t.detach().requires_grad_()


def _has_other_origins(outputs: Iterable[Tensor], inputs: Sequence[Tensor]) -> bool:
    """True if gradients of the outputs can go further than to the fresh `inputs`."""
    own = {edge_of(t) for t in inputs}
    if any(type(edge) is Node for edge in own):
        return True
    stack = [edge_of(t) for t in outputs]
    seen: set[Any] = set()
    while stack:
        edge = stack.pop()
        if edge is None or edge in own or edge in seen:
            continue
        if type(edge) is not Node:
            return True
        seen.add(edge)
        stack.extend(edge.edges or ())
    return False


def _with_aux(result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise ArgumentError(
            "has_aux: the function must return the pair (value, anything). "
            f"Got {type(result).__name__}."
        )
    return result


def _tensors(name: str, value: Any) -> tuple[list[Tensor], pytree.Structure]:
    leaves, shape = pytree.flatten(value)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise ArgumentError(
                f"{name}: the function must return tensors or trees of them. "
                f"Got {type(leaf).__name__}. Return other things with has_aux=True."
            )
    return leaves, shape


def _detached(value: Any) -> Any:
    return pytree.mapped(lambda x: x.detach() if isinstance(x, Tensor) else x, value)


def _pull(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    cotangents: Sequence[Tensor] | None,
    create: bool,
    retain: bool,
) -> list[Any]:
    """Gradients of the outputs that have any, with respect to `inputs`; 0 where there is none."""
    given = [None] * len(outputs) if cotangents is None else list(cotangents)
    used = [(o, g) for o, g in zip(outputs, given, strict=True) if o.requires_grad]
    if not used:
        return [zeros_like(t, requires_grad=False) for t in inputs]
    return list(
        engine.grad(
            [o for o, _ in used],
            inputs,
            None if cotangents is None else [g for _, g in used],
            retain_graph=retain,
            create_graph=create,
            allow_unused=True,
            materialize_grads=True,
        )
    )


def one_hot(like: Tensor, position: int) -> Tensor:
    """0 everywhere but 1 at one flat position, with the shape, dtype and device of `like`."""
    flat = zeros(like.numel(), dtype=like.dtype, device=like.device)
    flat[position] = 1
    return flat.reshape(like.shape)


def _rows(output: Tensor, inputs: Sequence[Tensor], create: bool) -> list[Any]:
    """The Jacobian of one output: a tensor for each input."""
    rows = [
        _pull([output], inputs, [one_hot(output, i)], create, retain=True)
        for i in range(output.numel())
    ]
    return [
        stack([row[j] for row in rows]).reshape(output.shape + t.shape)
        if rows
        else zeros(output.shape + t.shape, dtype=output.dtype, device=t.device)
        for j, t in enumerate(inputs)
    ]


def _columns(
    push: Callable[..., Any], leaves: list[Tensor], i: int, structure: pytree.Structure
) -> list[Tensor]:
    """The Jacobian of every output with respect to input `i`."""
    x = leaves[i]
    columns = []
    for position in range(max(x.numel(), 1)):
        tangents = [zeros_like(t, requires_grad=False) for t in leaves]
        if x.numel():
            tangents[i] = one_hot(x, position)
        columns.append(pytree.flatten(push(*pytree.unflatten(list(tangents), structure)))[0])
    out = []
    for outputs in zip(*columns, strict=True):
        joined = stack(outputs, -1) if x.numel() else zeros(*outputs[0].shape, 0)
        out.append(joined.reshape(outputs[0].shape + x.shape))
    return out


def _pushing(
    func: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool, strict: bool
) -> tuple[Any, Callable[..., Any], Any, bool]:
    """The value of `func`, the function that pushes tangents, what else it gave, and whether the
    results hang in a graph outside.

    The gradients `g(v)` are linear in v, so the derivative of `g(v)` along the tangent with
    respect to v is the derivative of the value along the tangent.
    """
    recorded = is_grad_enabled()
    with enable_grad():
        args, inputs, structure = _tracked("jvp", primals, tuple(range(len(primals))))
        value, aux = _with_aux(func(*args), has_aux)
        outputs, shape = _tensors("jvp", value)
        keep = recorded and _has_other_origins(outputs, inputs)
        used = [o for o in outputs if o.requires_grad]
        duals = [zeros_like(o, requires_grad=True) for o in used]
        pulled: Sequence[Any] = [None] * len(inputs)
        if used:
            pulled = engine.grad(used, inputs, duals, create_graph=True, allow_unused=True)
    if strict and (len(used) < len(outputs) or any(g is None for g in pulled)):
        raise GraphError(
            "jvp: with strict=True every output must depend on every input. "
            "Drop strict to get 0 for those that do not."
        )

    def push(*tangents: Any) -> Any:
        given, form = pytree.flatten(tangents)
        if form != structure or any(t.shape != x.shape for t, x in zip(given, inputs, strict=True)):
            raise ShapeError(
                "jvp: the tangents must have the structure and shapes of the primals. "
                f"Got {[describe(t) for t in given]} for {[describe(x) for x in inputs]}."
            )
        create = is_grad_enabled() and (keep or any(t.requires_grad for t in given))
        pairs = [(g, t) for g, t in zip(pulled, given, strict=True) if g is not None]
        pairs = [(g, t) for g, t in pairs if g.requires_grad]
        found = iter(_pull([g for g, _ in pairs], duals, [t for _, t in pairs], create, True))
        results = [
            next(found) if o.requires_grad else zeros_like(o, requires_grad=False) for o in outputs
        ]
        return pytree.unflatten(results, shape)

    return value, push, (aux if keep else _detached(aux)), keep
