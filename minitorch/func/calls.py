"""Modules as functions of their parameters and buffers."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import ArgumentError
from ..nn import tree
from ..nn.module import Module
from ..ops.joining import stack
from ..tensor import Tensor


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls `module` with other tensors in place of its parameters and buffers.

    Args:
        module: The module; it is as before afterwards.
        parameter_and_buffer_dicts: From paths to tensors; several mappings are joined.
        args: The positional arguments: a tuple, or one value.
        kwargs: The keyword arguments.
        tie_weights: A tensor given for one path of a tied one serves all of them.
        strict: Every parameter and buffer must be given.

    Returns:
        What the module returns.

    Raises:
        ArgumentError: A name is unknown, given twice, or (`strict`) missing.
    """
    tensors = _joined(parameter_and_buffer_dicts)
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with replaced(module, tensors, tie_weights=tie_weights, strict=strict):
        return module(*positional, **(kwargs or {}))


def _joined(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, Mapping):
        return dict(dicts)
    joined: dict[str, Tensor] = {}
    for one in dicts:
        twice = sorted(set(joined) & set(one))
        if twice:
            raise ArgumentError(
                f"functional_call: every name must be given once. Got {', '.join(twice)} in "
                "several dicts."
            )
        joined.update(one)
    return joined


@contextlib.contextmanager
def replaced(
    module: Module, tensors: Mapping[str, Tensor], *, tie_weights: bool, strict: bool
) -> Iterator[None]:
    """Inside, the module has other tensors at the given paths."""
    places = {
        tree.join(path, name): tensor
        for path, _, held in tree.walk(module, "", False, set())
        for name, tensor in [*held.parameters, *held.buffers]
    }
    unknown = [name for name in tensors if name not in places]
    missing = [name for name in places if name not in tensors] if strict else []
    if unknown or missing:
        near = difflib.get_close_matches(unknown[0], places, n=1) if unknown else []
        raise ArgumentError(
            f"functional_call: names must be those of {type(module).__name__}'s parameters and "
            f"buffers. Unknown: {unknown}; missing: {missing}."
            + (f" Did you mean '{near[0]}'?" if near else "")
        )
    given = dict(tensors)
    if tie_weights:
        by_tensor = {id(places[name]): value for name, value in tensors.items()}
        clash = [n for n, value in tensors.items() if by_tensor[id(places[n])] is not value]
        if clash:
            raise ArgumentError(
                f"functional_call: a tied tensor must be given once. Got several for {clash[0]!r}. "
                "Pass one of them, or tie_weights=False."
            )
        for name, tensor in places.items():
            if name not in given and id(tensor) in by_tensor:
                given[name] = by_tensor[id(tensor)]
    held = [(_slots(*tree.locate(module, name)), value) for name, value in given.items()]
    before = [(slots, key, slots[key]) for (slots, key), _ in held]
    try:
        for (slots, key), value in held:
            slots[key] = value
        yield
    finally:
        for slots, key, tensor in before:
            slots[key] = tensor


def _slots(holder: Any, key: Any) -> tuple[Any, Any]:
    """Where the item is stored: the attributes of a module, or the list or dict itself."""
    return (vars(holder), key) if isinstance(holder, Module) else (holder, key)


def stack_module_state(
    models: Sequence[Module],
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one kind, each stacked along axis 0.

    Args:
        models: Modules of one class with the same shapes.

    Returns:
        Two dicts from path to tensor, for `vmap` over `functional_call`; the parameters are leaves.

    Raises:
        ArgumentError: There are none, or they differ in class or mode.
    """
    models = list(models)
    if not models:
        raise ArgumentError("stack_module_state: at least one module is needed. Got none.")
    if len({type(m) for m in models}) > 1 or len({m.training for m in models}) > 1:
        raise ArgumentError(
            "stack_module_state: all modules must be of one class and in one mode. "
            f"Got {[(type(m).__name__, m.training) for m in models]}."
        )
    parameters = {
        name: _stacked([dict(m.named_parameters())[name] for m in models])
        for name, _ in models[0].named_parameters()
    }
    buffers = {
        name: _stacked([dict(m.named_buffers())[name] for m in models])
        for name, _ in models[0].named_buffers()
    }
    return parameters, buffers


def _stacked(tensors: list[Any]) -> Tensor:
    joined: Tensor = stack([t.detach() for t in tensors])
    return joined.requires_grad_(tensors[0].requires_grad)
