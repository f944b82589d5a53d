"""The protocol that every optimizer follows: parameter groups, hooks, state by name."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np

from .. import backend, dtypes
from ..autograd.handle import RemovableHandle
from ..errors import ArgumentError, CheckpointError, DtypeError, GraphError, describe
from ..kernels.ahead import made
from ..ops.primitive import wrap
from ..tensor import Tensor
from .flat import gradient_runs

Group = dict[str, Any]
# Keys that a group may have beside its options: a label, what schedules keep there, and the limit
# that the Trainer clips its gradients to.
EXTRA_KEYS = frozenset(
    "params names name initial_lr max_lr min_lr max_momentum base_momentum swa_lr "
    "gradient_clip_val".split()
)


class Optimizer:
    """Base of all optimizers.

    A subclass gives its options as `defaults` and overrides `step`. Only trainable parameters move:
    one whose `requires_grad` is False, or that has no gradient, is left as it is, and its state
    rests.

    Args:
        params: Parameters, `(name, parameter)` pairs, or dicts with `"params"` and options.
        defaults: The options of groups that do not set them.

    Attributes:
        param_groups: For each group a dict with `"params"`, `"names"` and the options.
        state: For each parameter a dict; made on the first update.
        defaults: The options given to the constructor.
        updates: How many updates were applied; skipped ones do not count.

    Raises:
        ArgumentError: No parameters, one given twice, or an unknown option.
        GraphError: A tensor given is not a leaf.
        DtypeError: A tensor given is not floating.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[Group] = []
        self.updates = 0
        self._skipped = 0
        self._in_step = False
        self._pre_hooks: dict[int, Callable[..., Any]] = {}
        self._post_hooks: dict[int, Callable[..., Any]] = {}
        self._state_hooks: dict[str, dict[int, Callable[..., Any]]] = {
            when: {}
            for when in ("before saving", "after saving", "before loading", "after loading")
        }
        kind = type(self).__name__
        made.add(kind)
        if isinstance(params, Tensor | dict) or not isinstance(params, Iterable):
            raise ArgumentError(
                f"{kind}: params must be an iterable of parameters or of group dicts. "
                f"Got {describe(params)}. Put it in a list."
            )
        groups: list[Any] = list(params)
        if not groups:
            raise ArgumentError(
                f"{kind}: the parameter list is empty. A generator that was used before gives "
                "nothing; call model.parameters() again, or check that the model has parameters."
            )
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "step" in cls.__dict__:
            cls.step = _observed(cls.__dict__["step"])  # type: ignore[method-assign]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Applies one update.

        Args:
            closure: Computes the loss anew and calls backward; run with recording on.

        Returns:
            What the closure returns, or None.
        """
        raise NotImplementedError(f"{type(self).__name__} must override step()")

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the gradients of all parameters.

        Args:
            set_to_none: Set `.grad` to None; otherwise fill it with zeros in place.
        """
        if set_to_none:
            for group in self.param_groups:
                for p in group["params"]:
                    p._grad = None
            return
        params = [p for group in self.param_groups for p in group["params"]]
        for p in params:
            if p.grad is not None:
                p.grad = p.grad.detach()
                p.grad._bump("zero_grad")
        for run in gradient_runs(params):
            run.array[...] = 0

    # ---- groups ----------------------------------------------------------------------------------

    def add_param_group(self, group: Group) -> None:
        """Adds parameters with options of their own; options not given are the defaults.

        Args:
            group: `"params"` (parameters or `(name, parameter)` pairs) and options.

        Raises:
            ArgumentError: An unknown option, no parameters, or one that is here already.
        """
        if not isinstance(group, dict) or "params" not in group:
            raise ArgumentError(
                f"{type(self).__name__}: a group is a dict with 'params'. Got {describe(group)}. "
                "Write {'params': model.parameters(), 'lr': 0.1}."
            )
        self._check_keys(group)
        named = self._named(group["params"], group.get("names"))
        options = {k: v for k, v in group.items() if k not in ("params", "names")}
        merged = {"params": [p for _, p in named], "names": [n for n, _ in named]}
        merged |= self.defaults | options
        self._check_options(merged)
        self.param_groups.append(merged)

    def _check_keys(self, group: Group) -> None:
        known = EXTRA_KEYS | self.defaults.keys()
        for key in group:
            if key not in known:
                close = get_close_matches(key, known, 1, 0.5)
                aliases = {"learning_rate": "lr", "l2": "weight_decay", "wd": "weight_decay"}
                guess = aliases.get(key, close[0] if close else None)
                hint = f" Did you mean {guess!r}?" if guess in known else ""
                raise ArgumentError(
                    f"{type(self).__name__}: unknown option {key!r} in a parameter group.{hint} "
                    f"Options: {', '.join(sorted(self.defaults))}; a label goes under 'name'."
                )

    def _check_options(self, group: Group) -> None:
        """Raises where an option of a group has a value outside of its rule."""

    def _named(self, params: Any, names: Any) -> list[tuple[str, Any]]:
        """`(name, parameter)` for each parameter of a new group, checked."""
        kind = type(self).__name__
        listed = [params] if isinstance(params, Tensor) else list(params)
        if not listed:
            raise ArgumentError(
                f"{kind}: a group has no parameters. A generator that was used before gives "
                "nothing; call model.parameters() again."
            )
        have = {id(p): n for g in self.param_groups for n, p in _pairs(g)}
        taken = set(have.values())
        out = []
        for i, entry in enumerate(listed):
            name, p = entry if isinstance(entry, tuple) else (names and names[i], entry)
            name = name or f"param_{len(have)}"
            if not isinstance(p, Tensor):
                raise ArgumentError(
                    f"{kind}: params must be tensors, or (name, tensor) pairs. Got {describe(p)}. "
                    "Pass model.parameters()."
                )
            node = p.grad_fn
            if node is not None:
                raise GraphError(
                    f"{kind}: only leaves can be optimized. Got {describe(p)}, the result of "
                    f"{node.name()}. Optimize the parameters that it came from."
                )
            if not p.dtype.is_floating_point:
                raise DtypeError(
                    f"{kind}: parameters must be floating. Got {describe(p)}. Keep integers in "
                    "buffers."
                )
            if id(p) in have:
                raise ArgumentError(
                    f"{kind}: each parameter may be given once. {name!r} came before as "
                    f"{have[id(p)]!r}. Remove one of them; tied weights count once."
                )
            if name in taken:
                raise ArgumentError(f"{kind}: two parameters are named {name!r}. Rename one.")
            have[id(p)] = name
            taken.add(name)
            out.append((name, p))
        return out

    def name_parameters(self, named: Iterable[tuple[str, Any]]) -> None:
        """Gives parameters the names under which `state_dict` stores their state.

        Args:
            named: `(name, parameter)` pairs, as `model.named_parameters()` gives them. Parameters
                that are not among them keep their names.

        Raises:
            ArgumentError: Two parameters would have one name.
        """
        names: dict[int, str] = {}
        for name, p in named:
            names.setdefault(id(p), name)
        new = [[names.get(id(p), n) for n, p in _pairs(g)] for g in self.param_groups]
        flat = [n for group in new for n in group]
        twice = sorted({n for n in flat if flat.count(n) > 1}) if len(set(flat)) < len(flat) else []
        if twice:
            raise ArgumentError(
                f"{type(self).__name__}: two parameters are named {', '.join(map(repr, twice))}. "
                "Name every parameter, and each name once."
            )
        for group, group_names in zip(self.param_groups, new, strict=True):
            group["names"] = group_names

    # ---- hooks -----------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` before each update.

        What the hook returns, if not None, is the pair `(args, kwargs)` that `step` gets instead.
        """
        return RemovableHandle(self._pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., None]) -> RemovableHandle:
        """Calls `hook(optimizer, args, kwargs)` after each update."""
        return RemovableHandle(self._post_hooks, hook)

    def register_state_dict_pre_hook(
        self, hook: Callable[..., None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` before `state_dict` collects; with `prepend` before others."""
        return self._add_hook("before saving", hook, prepend)

    def register_state_dict_post_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)`; what it returns, if not None, is returned."""
        return self._add_hook("after saving", hook, prepend)

    def register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer, state_dict)`; what it returns, if not None, is loaded."""
        return self._add_hook("before loading", hook, prepend)

    def register_load_state_dict_post_hook(
        self, hook: Callable[..., None], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(optimizer)` after `load_state_dict`."""
        return self._add_hook("after loading", hook, prepend)

    def _add_hook(self, when: str, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
        hooks = self._state_hooks[when]
        others = dict(hooks)
        handle = RemovableHandle(hooks, hook)
        if prepend:
            for key in others:
                hooks[key] = hooks.pop(key)
        return handle

    def _through(self, when: str, state_dict: dict[str, Any]) -> dict[str, Any]:
        for hook in list(self._state_hooks[when].values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        return state_dict

    # ---- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """A snapshot of the options and the state, keyed by the names of the parameters.

        Returns:
            `"state"`: for each parameter that was updated a dict of tensors (copies) and numbers;
            `"param_groups"`: for each group its options, and `"params"` and `"shapes"` with the
            names and shapes of its parameters; `"updates"`: how many were applied.
        """
        for hook in list(self._state_hooks["before saving"].values()):
            hook(self)
        state = {
            name: {k: _copied(v) for k, v in self.state[p].items()}
            for group in self.param_groups
            for name, p in _pairs(group)
            if p in self.state
        }
        groups = []
        for group in self.param_groups:
            options = {k: _plain(v) for k, v in group.items() if k not in ("params", "names")}
            options["params"] = list(group["names"])
            options["shapes"] = [list(p.shape) for p in group["params"]]
            groups.append(options)
        saved = {"state": state, "param_groups": groups, "updates": self.updates}
        return self._through("after saving", saved)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Puts back what `state_dict` returned; state goes to the parameter of the same name.

        The options of the snapshot take the place of the present ones. Groups are matched by the
        names of their parameters.

        Raises:
            CheckpointError: Names or shapes differ; lists all that is missing, unexpected or of
                another shape.
        """
        state_dict = self._through("before loading", state_dict)
        matched = self._matched(state_dict)
        self.updates = state_dict.get("updates", self.updates)
        for group, saved in matched:
            for key, value in saved.items():
                if key not in ("params", "shapes"):
                    tuples = isinstance(group.get(key), tuple) and isinstance(value, list)
                    group[key] = tuple(value) if tuples else value
            for name, p in _pairs(group):
                entries = state_dict["state"].get(name)
                if entries is None:
                    self.state.pop(p, None)
                    continue
                present = self.state[p]
                for key in present.keys() - entries.keys():
                    del present[key]
                for key, value in entries.items():
                    present[key] = _placed(value, present.get(key), p)
        for hook in list(self._state_hooks["after loading"].values()):
            hook(self)

    def _matched(self, state_dict: dict[str, Any]) -> list[tuple[Group, Group]]:
        """Each group with the saved one that has the same parameters."""
        kind = type(self).__name__
        if not isinstance(state_dict, dict) or not {"state", "param_groups"} <= state_dict.keys():
            raise CheckpointError(
                f"{kind}.load_state_dict: a dict with 'state' and 'param_groups' is needed. "
                f"Got {describe(state_dict)}. Pass what state_dict() returned."
            )
        saved = {
            name: (tuple(shape), i)
            for i, group in enumerate(state_dict["param_groups"])
            for name, shape in zip(group["params"], group["shapes"], strict=True)
        }
        here = {n: tuple(p.shape) for g in self.param_groups for n, p in _pairs(g)}
        faults = {
            "missing": [n for n in here if n not in saved],
            "unexpected": [n for n in saved if n not in here],
            "of another shape": [
                f"{n} {list(saved[n][0])} → {list(s)}"
                for n, s in here.items()
                if n in saved and saved[n][0] != s
            ],
        }
        found = "; ".join(f"{k}: {', '.join(v)}" for k, v in faults.items() if v)
        if found:
            raise CheckpointError(
                f"{kind}.load_state_dict: names and shapes of the parameters must agree with the "
                f"snapshot. {found}. If only names differ, call "
                "optimizer.name_parameters(model.named_parameters()) before saving and loading."
            )
        pairs = []
        for group in self.param_groups:
            index = saved[group["names"][0]][1]
            other = state_dict["param_groups"][index]
            if set(other["params"]) != set(group["names"]):
                raise CheckpointError(
                    f"{kind}.load_state_dict: parameters are grouped in another way than in the "
                    f"snapshot. There {group['names'][0]!r} is together with "
                    f"{len(other['params']) - 1} others, here with {len(group['names']) - 1}. "
                    "Make the optimizer with the same groups."
                )
            pairs.append((group, other))
        return pairs

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for i, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {i}")
            options = sorted(k for k in group if k not in ("params", "names"))
            lines += [f"    {key}: {group[key]}" for key in options]
        return "\n".join([*lines, ")"])


def _observed(step: Callable[..., Any]) -> Callable[..., Any]:
    """`step` with its hooks, counted; an inner `super().step()` is part of the outer one."""

    @functools.wraps(step)
    def observed(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._in_step:
            return step(self, *args, **kwargs)
        if self._pre_hooks:
            args, kwargs = _before_step(self, args, kwargs)
        self._in_step = True
        try:
            out = step(self, *args, **kwargs)
        finally:
            self._in_step = False
        self.updates += 1
        if self._post_hooks:
            for hook in list(self._post_hooks.values()):
                hook(self, args, kwargs)
        return out

    return observed


def _before_step(optimizer: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of an update, as the hooks before it leave them."""
    for hook in list(optimizer._pre_hooks.values()):
        result = hook(optimizer, args, kwargs)
        if result is not None:
            if not isinstance(result, tuple) or len(result) != 2:
                raise ArgumentError(
                    "register_step_pre_hook: a hook returns None or (args, kwargs). "
                    f"Got {describe(result)}."
                )
            args, kwargs = result
    return args, kwargs


def _pairs(group: Group) -> Iterable[tuple[str, Any]]:
    names, params = group["names"], group["params"]
    if len(names) != len(params):
        raise ArgumentError(
            f"optimizer: a group has {len(params)} parameters and {len(names)} names. "
            "Add parameters with add_param_group(), or change group['names'] as well."
        )
    return zip(names, params, strict=True)


def _copied(value: Any) -> Any:
    if isinstance(value, list):
        return [_copied(v) for v in value]
    return wrap(value._array.copy()) if isinstance(value, Tensor) else value


def _plain(value: Any) -> Any:
    """An option as JSON can hold it."""
    if isinstance(value, Tensor):
        return value.item()
    if isinstance(value, np.generic):
        return value.item()
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def state_dtype(dtype: Any) -> Any:
    """The NumPy dtype of the state of a parameter: never narrower than float32."""
    return np.dtype(np.float32) if dtype in dtypes.HALF else dtype


def _placed(value: Any, present: Any, param: Any) -> Any:
    """A saved entry where the state of `param` lives; in the memory of `present` if it fits."""
    if isinstance(value, list):
        return [_placed(v, None, param) for v in value]
    if not isinstance(value, Tensor):
        return value.copy() if isinstance(value, np.ndarray) else value
    target = param._array
    array = backend.transfer(value._array, param.device)
    dtype = state_dtype(target.dtype) if value.is_floating_point() else array.dtype
    if isinstance(present, Tensor):
        old = present._array
        if type(old) is type(array) and old.shape == array.shape and old.dtype == dtype:
            old[...] = array
            present._bump("load_state_dict")
            return present
    return wrap(array.astype(dtype, copy=True))
