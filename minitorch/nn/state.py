"""State dicts: a flat mapping from the path of a tensor to its values."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import backend, dtypes
from ..autograd import no_grad
from ..autograd.mode import state as mode
from ..errors import ArgumentError, CheckpointError, describe
from ..ops.creation import from_numpy
from ..tensor import Tensor
from .hooks import LOAD, LOAD_PRE, SAVE, SAVE_PRE, hooks_of
from .partial import note_left, without_wrapper
from .ties import settle
from .tree import TreeNode, contents, is_saved, keep_ties

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
    """One tensor of a module; `required` is False for tensors that nobody declared."""

    path: str
    tensor: Tensor
    required: bool


def _own(module: TreeNode, prefix: str) -> list[_Slot]:
    """The tensors of `module` itself that its state holds."""
    held = contents(module)
    slots = [_Slot(prefix + name, tensor, True) for name, tensor in held.parameters]
    return slots + [
        _Slot(prefix + name, tensor, name in module._declared)
        for name, tensor in held.buffers
        if is_saved(module, name)
    ]


def _check_new(owner: TreeNode, path: str, paths: set[str]) -> None:
    if path in paths:
        raise ArgumentError(
            f"{type(owner).__name__}: two tensors have the path '{path}'. "
            "Rename the attribute or the key of the dict that holds one of them."
        )
    paths.add(path)


def _has_extra_state(module: Any) -> bool:
    from .module import Module

    return type(module).get_extra_state is not Module.get_extra_state


class _Collecting:
    """One `state_dict`: detached tensors by identity, so that ties stay ties, and what was seen."""

    def __init__(self) -> None:
        self.detached: dict[int, Tensor] = {}
        self.paths: set[str] = set()
        self.open: set[int] = set()


def collect(module: Any, destination: Any, prefix: str, keep_vars: bool) -> Any:
    """Fills `destination` (a new OrderedDict if None) with the state of `module`.

    A tensor that has two paths is stored under both as the same object.
    """
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    return _collect(module, destination, prefix, keep_vars, _Collecting())


def _collect(module: Any, destination: Any, prefix: str, keep_vars: bool, memo: _Collecting) -> Any:
    from .module import Module

    memo.open.add(id(module))
    if "_ties" in module.__dict__:
        keep_ties(module)
    for hook in hooks_of(module, SAVE_PRE):
        hook(module, prefix, keep_vars)
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    if type(module)._save_to_state_dict is Module._save_to_state_dict:
        save_own(module, destination, prefix, keep_vars, memo)
    else:
        module._save_to_state_dict(destination, prefix, keep_vars)
    for name, child in contents(module).modules:
        if id(child) in memo.open:
            continue
        path = f"{prefix}{name}."
        if type(child).state_dict is Module.state_dict:
            _collect(child, destination, path, keep_vars, memo)
        else:
            child.state_dict(destination=destination, prefix=path, keep_vars=keep_vars)
    for hook in hooks_of(module, SAVE):
        changed = hook(module, destination, prefix, metadata)
        destination = destination if changed is None else changed
    memo.open.discard(id(module))
    return destination


def save_own(
    module: Any, destination: Any, prefix: str, keep_vars: bool, memo: _Collecting | None = None
) -> None:
    """Puts the tensors of `module` itself, and its extra state, into `destination`."""
    memo = _Collecting() if memo is None else memo
    for path, tensor, _ in _own(module, prefix):
        _check_new(module, path, memo.paths)
        if not keep_vars and not _has_no_shape(tensor):
            if id(tensor) not in memo.detached:
                memo.detached[id(tensor)] = _given_out(tensor)
            tensor = memo.detached[id(tensor)]
        destination[path] = tensor
    if _has_extra_state(module):
        destination[prefix + EXTRA_STATE] = module.get_extra_state()


def _given_out(tensor: Tensor) -> Tensor:
    """The detached tensor; under a Trainer a copy, so that later updates do not change it.

    The copy is read-only on the CPU: a write that was meant for the module must not get lost.
    """
    if not mode.snapshots:
        return tensor.detach()
    copy = tensor.detach().clone()
    if backend.device_of(copy._array).type == "cpu":
        copy._array.flags.writeable = False
    return copy


class _Loading:
    """One `load_state_dict`: what fits is noted, and written once everything was looked at."""

    def __init__(self, state: dict[str, Any], assign: bool) -> None:
        self.state = state
        self.assign = assign
        self.found: list[tuple[_Slot, Tensor]] = []
        self.unfit: list[str] = []
        self.extra: list[tuple[Any, Any]] = []
        self.names: set[str] = set()
        self.tensors = 0
        self.open: set[int] = set()
        self.visited: list[Any] = []
        self.foreign: list[str] = []  # where a module took what it wanted in its own way

    def write(self) -> None:
        """Writes what was found."""
        with no_grad():
            for slot, value in self.found:
                _put(slot, value, self.assign)
        for owner, value in self.extra:
            owner.set_extra_state(value)

    def unexpected(self) -> list[str]:
        """The names that belong to nothing."""
        foreign = tuple(self.foreign)
        return [n for n in self.state if n not in self.names and not n.startswith(foreign)]


def restore(
    module: Any, state_dict: Mapping[str, Any], strict: bool, assign: bool
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
    given, versions = without_wrapper(module, state_dict)
    loading = _Loading(given, assign)
    keys, errors = IncompatibleKeys([], []), list[str]()
    _look(module, "", loading, versions, keys, errors)
    keys.unexpected_keys.extend(loading.unexpected())
    settle(module, {slot.path: value for slot, value in loading.found}, keys.missing_keys, errors)
    nothing = bool(loading.tensors and state_dict) and not loading.found and not loading.foreign

    def check(final: bool) -> None:
        mismatch = strict and bool(keys.missing_keys or keys.unexpected_keys)
        if loading.unfit or errors or nothing or (final and mismatch):
            raise CheckpointError(_report(type(module).__name__, loading, keys, errors))

    after = [(m, hook) for m in reversed(loading.visited) for hook in hooks_of(m, LOAD)]
    check(final=not after)
    loading.write()
    for owner, hook in after:
        hook(owner, keys)
    check(final=True)
    note_left(module, loading.visited, *keys)
    return keys


def _look(
    module: Any,
    prefix: str,
    loading: _Loading,
    versions: Mapping[str, Any],
    keys: IncompatibleKeys,
    errors: list[str],
) -> None:
    """Lets `module` and everything below it note what they take."""
    loading.open.add(id(module))
    loading.visited.append(module)
    metadata = {**versions.get(prefix[:-1], {}), "assign_to_params_buffers": loading.assign}
    metadata["loading"] = loading
    before = len(loading.names), loading.tensors
    module._load_from_state_dict(loading.state, prefix, metadata, True, *keys, errors)
    own = _own(module, prefix)
    if own and before == (len(loading.names), loading.tensors):
        loading.foreign.append(prefix)
    for name, child in contents(module).modules:
        if id(child) not in loading.open:
            _look(child, f"{prefix}{name}.", loading, versions, keys, errors)
    loading.open.discard(id(module))


def load_own(
    module: Any,
    state_dict: dict[str, Any],
    prefix: str,
    local_metadata: dict[str, Any],
    strict: bool,
    missing: list[str],
    unexpected: list[str],
    errors: list[str],
) -> None:
    """Notes what `module` itself takes from `state_dict`; without a load around it, takes it."""
    shared = local_metadata.get("loading")
    loading = shared if shared is not None else _Loading(state_dict, False)
    for hook in hooks_of(module, LOAD_PRE):
        given = (state_dict, prefix, local_metadata, strict, missing, unexpected, errors)
        hook.function(*((module, *given) if hook.with_kwargs else given))
    for slot in _own(module, prefix):
        path, tensor, required = slot
        _check_new(module, path, loading.names)
        loading.tensors += 1
        if path not in state_dict:
            if required:
                missing.append(path)
            continue
        value = _as_tensor(path, state_dict[path])
        if _fits(slot, value):
            loading.found.append((slot, value))
        else:
            loading.unfit.append(f"{path} (model {describe(tensor)}, given {describe(value)})")
    if _has_extra_state(module):
        path = prefix + EXTRA_STATE
        loading.names.add(path)
        if path in state_dict:
            loading.extra.append((module, state_dict[path]))
        else:
            missing.append(path)
    if shared is None and not loading.unfit:
        loading.write()
    elif shared is None:
        errors.extend(loading.unfit)


def _as_tensor(name: str, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    if backend.is_array(value):
        return from_numpy(value)
    raise CheckpointError(
        f"load_state_dict: the value of '{name}' must be a tensor or an array. "
        f"Got {type(value).__name__}. Convert it with minitorch.tensor(...)."
    )


def _has_no_shape(tensor: Tensor) -> bool:
    """True for what a lazy layer holds before its first call."""
    return hasattr(type(tensor), "materialize")


def _fits(slot: _Slot, value: Tensor) -> bool:
    """True if the tensor can take the value; a plain one also takes another shape, since what
    changed its value may have changed its shape.
    """
    if _has_no_shape(slot.tensor):
        return True
    if slot.required and slot.tensor.shape != value.shape:
        return False
    return dtypes.can_cast(value.dtype, slot.tensor.dtype)


def _put(slot: _Slot, value: Tensor, assign: bool) -> None:
    tensor = slot.tensor
    if _has_no_shape(tensor):
        if _has_no_shape(value):
            return
        tensor.materialize(value.shape)
    value = value.detach()
    if assign:
        tensor.data = value
    elif tensor.shape == value.shape:
        tensor.copy_(value)
    else:
        tensor.data = value.to(device=tensor.device, dtype=tensor.dtype, copy=True)


def _report(owner: str, loading: _Loading, keys: IncompatibleKeys, errors: list[str]) -> str:
    missing, unexpected = keys
    lines = [
        f"{owner}.load_state_dict: names, shapes and kinds of number must match. "
        f"{len(loading.found)} of {loading.tensors} tensors of the model do."
    ]
    for count_of, names in (
        ("missing (the model has it, the file does not)", missing),
        ("unexpected (the file has it, the model does not)", unexpected),
        ("of another shape or kind", loading.unfit),
    ):
        if names:
            lines.append(f"  {len(names)} {count_of}: {', '.join(names)}")
    lines += [f"  {error}" for error in errors]
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
