"""State dicts: a flat mapping from the path of a tensor to its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import backend, dtypes
from ..autograd import no_grad
from ..errors import ArgumentError, CheckpointError, describe
from ..ops.creation import from_numpy
from ..tensor import Tensor
from .tree import TreeNode, join, walk

EXTRA_STATE = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What `load_state_dict` returns: names that the file or the model lacks."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return (
            f"IncompatibleKeys(missing_keys={self.missing_keys}, "
            f"unexpected_keys={self.unexpected_keys})"
        )


class _Slot(NamedTuple):
    """One tensor of a model; `required` is False for tensors that nobody declared."""

    tensor: Tensor
    required: bool


def _slots(module: TreeNode) -> dict[str, _Slot]:
    slots: dict[str, _Slot] = {}

    def add(path: str, tensor: Tensor, required: bool) -> None:
        if path in slots:
            raise ArgumentError(
                f"{type(module).__name__}: two tensors have the path '{path}'. "
                "Rename the attribute or the key of the dict that holds one of them."
            )
        slots[path] = _Slot(tensor, required)

    for prefix, owner, held in walk(module, "", False, set()):
        declared = owner._declared
        for name, parameter in held.parameters:
            add(join(prefix, name), parameter, True)
        for name, buffer in held.buffers:
            if declared.get(name, True):
                add(join(prefix, name), buffer, name in declared)
    return slots


def _extra_owners(module: TreeNode) -> dict[str, Any]:
    from .module import Module

    return {
        join(prefix, EXTRA_STATE): owner
        for prefix, owner, _ in walk(module, "", False, set())
        if type(owner).get_extra_state is not Module.get_extra_state
    }


def collect(module: TreeNode, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Fills `destination` (a new OrderedDict if None) with the state of `module`.

    A tensor that has two paths is stored under both as the same object.
    """
    destination = OrderedDict() if destination is None else destination
    detached: dict[int, Tensor] = {}
    for path, (tensor, _) in _slots(module).items():
        if not keep_vars:
            tensor = detached.setdefault(id(tensor), tensor.detach())
        destination[prefix + path] = tensor
    for path, owner in _extra_owners(module).items():
        destination[prefix + path] = owner.get_extra_state()
    return destination


def restore(
    module: TreeNode, state_dict: Mapping[str, Any], strict: bool, assign: bool
) -> IncompatibleKeys:
    """Copies `state_dict` into the tensors of `module`; checks everything before the first copy.

    Raises:
        CheckpointError: Keys or shapes do not match (`strict`), a shape or kind of number does not
            fit, or nothing matches at all.
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            f"load_state_dict: expected a mapping from names to tensors. Got "
            f"{type(state_dict).__name__}. Pass the result of state_dict() or of minitorch.load()."
        )
    slots, extra = _slots(module), _extra_owners(module)
    found = [name for name in slots if name in state_dict]
    missing = [name for name, slot in slots.items() if slot.required and name not in state_dict]
    missing += [name for name in extra if name not in state_dict]
    unexpected = [name for name in state_dict if name not in slots and name not in extra]
    values = {name: _as_tensor(name, state_dict[name]) for name in found}
    unfit = [
        f"{name} (model {describe(slots[name].tensor)}, given {describe(value)})"
        for name, value in values.items()
        if not _fits(slots[name].tensor, value)
    ]
    nothing = bool(slots) and bool(state_dict) and not found
    if unfit or nothing or (strict and (missing or unexpected)):
        raise CheckpointError(
            _report(type(module).__name__, len(slots), len(found), missing, unexpected, unfit)
        )
    with no_grad():
        for name, value in values.items():
            _put(slots[name].tensor, value, assign)
    for name, owner in extra.items():
        if name in state_dict:
            owner.set_extra_state(state_dict[name])
    return IncompatibleKeys(missing, unexpected)


def _as_tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if backend.is_array(value):
        return from_numpy(value)
    raise CheckpointError(
        f"load_state_dict: the value of '{name}' must be a tensor or an array. "
        f"Got {type(value).__name__}. Convert it with minitorch.tensor(...)."
    )


def _fits(tensor: Tensor, value: Tensor) -> bool:
    if tensor.shape != value.shape:
        return False
    return dtypes.can_cast(value.dtype, tensor.dtype)


def _put(tensor: Tensor, value: Tensor, assign: bool) -> None:
    if assign:
        tensor.data = value.detach()
    else:
        tensor.copy_(value.detach())


def _report(
    owner: str,
    total: int,
    matched: int,
    missing: list[str],
    unexpected: list[str],
    unfit: list[str],
) -> str:
    lines = [
        f"{owner}.load_state_dict: names, shapes and kinds of number must match. "
        f"{matched - len(unfit)} of {total} tensors of the model do."
    ]
    for count_of, names in (
        ("missing (the model has it, the file does not)", missing),
        ("unexpected (the file has it, the model does not)", unexpected),
        ("of another shape or kind", unfit),
    ):
        if names:
            lines.append(f"  {len(names)} {count_of}: {', '.join(names)}")
    lines.append("  " + _advice(missing, unexpected))
    return "\n".join(lines)


def _advice(missing: list[str], unexpected: list[str]) -> str:
    wanted = set(missing)
    for name in unexpected:
        head, dot, _ = name.partition(".")
        prefix = head + dot
        if dot and {n.removeprefix(prefix) for n in unexpected if n.startswith(prefix)} & wanted:
            return (
                f"The names of the file carry the prefix '{prefix}': load "
                f"{{k.removeprefix({prefix!r}): v for k, v in state.items()}}."
            )
    for name in missing:
        head, dot, _ = name.partition(".")
        prefix = head + dot
        if dot and {prefix + n for n in unexpected} & wanted:
            return f"The names of the file lack the prefix '{prefix}': load into that submodule."
    return "Build the model with the options of the saved one, or load only the part that fits."
