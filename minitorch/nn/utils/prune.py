"""Pruning: parts of a weight are held at 0 by a mask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import ArgumentError, ShapeError, describe
from ...ops.creation import ones_like, zeros_like
from ...ops.joining import cat
from ...ops.sampling import rand, rand_like
from ...tensor import Parameter, Tensor
from ..hooks import FORWARD_PRE
from ..module import Module


class BasePruningMethod(ABC):
    """How a mask is computed, and the hook that applies it before every forward.

    A subclass defines `compute_mask` and says by `PRUNING_TYPE` what it looks at when a tensor is
    pruned again: `"unstructured"` (what is left), `"structured"` (channels along `dim` that have
    anything left) or `"global"`.
    """

    PRUNING_TYPE = "unstructured"
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        vars(module)[self._tensor_name] = self.apply_mask(module)

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of 0 and 1 for importance scores `t`, at most `default_mask`."""

    def apply_mask(self, module: Any) -> Tensor:
        """The original times the mask."""
        original = getattr(module, self._tensor_name + "_orig")
        mask = getattr(module, self._tensor_name + "_mask")
        pruned: Tensor = mask.to(dtype=original.dtype) * original
        return pruned

    @classmethod
    def apply(
        cls, module: Module, name: str, *args: Any, importance_scores: Any = None, **kwargs: Any
    ) -> BasePruningMethod:
        """Prunes `name` of `module` with a method of this class; returns the method in use.

        The parameter becomes `name_orig`, the mask the buffer `name_mask`, and `name` their
        product. A second pruning prunes what the first one left.
        """
        method: Any = cls(*args, **kwargs)
        method._tensor_name = name
        before = _method_of(module, name)
        original = getattr(module, name + "_orig" if before is not None else name, None)
        if not isinstance(original, Parameter):
            raise ArgumentError(
                f"prune: {type(module).__name__} must have a parameter '{name}'. "
                f"Got {type(original).__name__}."
            )
        scores = original if importance_scores is None else importance_scores
        if scores.shape != original.shape:
            raise ShapeError(
                f"prune: the importance scores must have the shape of '{name}', "
                f"{describe(original)}. Got {describe(scores)}."
            )
        if before is not None:
            mask = getattr(module, name + "_mask")
            method = PruningContainer(before, method)
            _remove_hook(module, name)
        else:
            mask = ones_like(original, requires_grad=False)
            delattr(module, name)
            module.register_parameter(name + "_orig", original)
        mask = method.compute_mask(scores.detach(), mask)
        module.register_buffer(name + "_mask", mask.to(dtype=original.dtype))
        module.register_forward_pre_hook(method)
        method(module, ())
        return method

    def prune(self, t: Tensor, default_mask: Any = None, importance_scores: Any = None) -> Tensor:
        """`t` with a new mask on it; no module takes part."""
        scores = t if importance_scores is None else importance_scores
        mask = ones_like(t, requires_grad=False) if default_mask is None else default_mask
        return t * self.compute_mask(scores.detach(), mask)

    def remove(self, module: Module) -> None:
        """Makes the pruned weight an ordinary parameter again; what was pruned stays 0."""
        name = self._tensor_name
        weight = self.apply_mask(module).detach()
        original = getattr(module, name + "_orig")
        original.data = weight
        for part in (name, name + "_orig", name + "_mask"):
            delattr(module, part)
        module.register_parameter(name, original)


class PruningContainer(BasePruningMethod):
    """Several prunings of one tensor, one after another."""

    PRUNING_TYPE = "container"

    def __init__(self, *methods: BasePruningMethod) -> None:
        self._methods: list[BasePruningMethod] = []
        for method in methods:
            self.add_pruning_method(method)
        self._tensor_name = self._methods[0]._tensor_name

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Adds a pruning of the same tensor."""
        parts = method._methods if isinstance(method, PruningContainer) else [method]
        self._methods += parts

    def __len__(self) -> int:
        return len(self._methods)

    def __iter__(self) -> Any:
        return iter(self._methods)

    def __getitem__(self, index: int) -> BasePruningMethod:
        return self._methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask after the last method pruned what the others left."""
        method: Any = self._methods[-1]
        mask = default_mask.clone()
        if method.PRUNING_TYPE in ("unstructured", "global"):
            left = mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = method.dim % t.ndim
            others = tuple(i for i in range(t.ndim) if i != dim)
            alive = (mask != 0).sum(others) != 0 if others else mask != 0
            left = tuple(alive if i == dim else slice(None) for i in range(t.ndim))
        else:
            raise ArgumentError(
                "prune: PRUNING_TYPE must be 'unstructured', 'structured' or 'global'. "
                f"Got {method.PRUNING_TYPE!r}."
            )
        mask[left] = method.compute_mask(t[left], mask[left]).to(dtype=mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the parts."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask


class RandomUnstructured(BasePruningMethod):
    """Prunes random elements: `amount` is a number of them, or a share from 0 to 1."""

    def __init__(self, amount: float) -> None:
        self.amount = _checked_amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return _without(default_mask, rand_like(t), _count(self.amount, t.numel()))


class L1Unstructured(BasePruningMethod):
    """Prunes the elements of the smallest magnitude."""

    def __init__(self, amount: float) -> None:
        self.amount = _checked_amount(amount)

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return _without(default_mask, t.abs(), _count(self.amount, t.numel()))


class RandomStructured(BasePruningMethod):
    """Prunes random channels along `dim`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        self.amount, self.dim = _checked_amount(amount), dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        scores = rand(t.shape[_axis(t, self.dim)], device=t.device)
        return _without_channels(t, default_mask, scores, self.dim, self.amount)


class LnStructured(BasePruningMethod):
    """Prunes the channels along `dim` with the smallest norm of order `n`."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        self.amount, self.n, self.dim = _checked_amount(amount), n, dim

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        axis = _axis(t, self.dim)
        rows = t.movedim(axis, 0).reshape(t.shape[axis], -1)
        return _without_channels(t, default_mask, rows.norm(self.n, 1), self.dim, self.amount)


class CustomFromMask(BasePruningMethod):
    """Prunes where a given mask is 0."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            left = default_mask.numel()
            raise ShapeError(
                "prune: a mask must have the shape of the tensor. "
                f"Got {describe(self.mask)} for {left} elements that are left. Prune once."
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)


def identity(module: Module, name: str) -> Module:
    """Prepares `name` for pruning with a mask of ones; returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: float) -> Module:
    """Holds random elements of `name` at 0.

    Args:
        module: The module; it is changed and returned.
        name: Its parameter.
        amount: How many elements, or which share of them (a float from 0 to 1).
    """
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(
    module: Module, name: str, amount: float, importance_scores: Any = None
) -> Module:
    """Holds the elements of `name` with the smallest magnitude (or score) at 0."""
    L1Unstructured.apply(module, name, amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: float, dim: int) -> Module:
    """Holds random channels of `name` along `dim` at 0."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: float, n: Any, dim: int, importance_scores: Any = None
) -> Module:
    """Holds the channels of `name` along `dim` with the smallest norm of order `n` at 0."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Holds the elements of `name` at 0 where `mask` is 0."""
    CustomFromMask.apply(module, name, mask)
    return module


def global_unstructured(
    parameters: Iterable[tuple[Module, str]],
    pruning_method: type[BasePruningMethod],
    importance_scores: Any = None,
    **kwargs: Any,
) -> None:
    """Prunes several tensors as if they were one.

    Args:
        parameters: Pairs of a module and the name of its parameter.
        pruning_method: A method of an unstructured type.
        importance_scores: None, or a dict from some of the pairs to scores.
        kwargs: Arguments of the method.

    Raises:
        ArgumentError: The method is structured.
    """
    pairs = list(parameters)
    if pruning_method.PRUNING_TYPE != "unstructured":
        raise ArgumentError(
            "global_unstructured: the pruning method must be unstructured. "
            f"Got {pruning_method.__name__}, which is {pruning_method.PRUNING_TYPE}."
        )
    given = importance_scores or {}
    scores = [given.get((m, n), getattr(m, n)).detach() for m, n in pairs]
    masks = [
        getattr(m, n + "_mask", ones_like(s, requires_grad=False))
        for (m, n), s in zip(pairs, scores, strict=True)
    ]
    container = _Global(pruning_method(**kwargs))
    joined = container.compute_mask(
        cat([s.reshape(-1) for s in scores]), cat([m.reshape(-1) for m in masks])
    )
    start = 0
    for (module, name), score in zip(pairs, scores, strict=True):
        part = joined[start : start + score.numel()].reshape(score.shape)
        custom_from_mask(module, name, _whole(part, module, name))
        start += score.numel()


def _whole(mask: Tensor, module: Module, name: str) -> Tensor:
    """The mask for a second pruning, which sees only what is left."""
    before = getattr(module, name + "_mask", None)
    return mask if before is None else mask[before == 1]


class _Global(PruningContainer):
    def __init__(self, method: Any) -> None:
        method._tensor_name = "joined"
        super().__init__(method)


def is_pruned(module: Module) -> bool:
    """True if a parameter of the module, or of one below it, is pruned."""
    return any(
        isinstance(hook.function, BasePruningMethod)
        for m in module.modules()
        if m._hooks is not None
        for hook in m._hooks[FORWARD_PRE]
    )


def remove(module: Module, name: str) -> Module:
    """Makes the pruned `name` an ordinary parameter again; what was pruned stays 0.

    Raises:
        ArgumentError: It is not pruned.
    """
    method = _method_of(module, name)
    if method is None:
        raise ArgumentError(f"prune.remove: '{name}' of {type(module).__name__} is not pruned.")
    _remove_hook(module, name)
    method.remove(module)
    return module


def _hooks(module: Module) -> dict[int, Any]:
    return module._hooks.kinds[FORWARD_PRE] if module._hooks is not None else {}


def _number(module: Module, name: str) -> int | None:
    for number, hook in _hooks(module).items():
        method = hook.function
        if isinstance(method, BasePruningMethod) and method._tensor_name == name:
            return number
    return None


def _method_of(module: Module, name: str) -> Any:
    number = _number(module, name)
    return None if number is None else _hooks(module)[number].function


def _remove_hook(module: Module, name: str) -> None:
    number = _number(module, name)
    if number is not None:
        del _hooks(module)[number]


def _checked_amount(amount: Any) -> float:
    is_share = isinstance(amount, float)
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise ArgumentError(f"prune: amount must be a number. Got {type(amount).__name__}.")
    if amount < 0 or (is_share and amount > 1):
        raise ArgumentError(
            "prune: amount must be a count, at least 0, or a share from 0.0 to 1.0. "
            f"Got {amount!r}."
        )
    return amount


def _count(amount: float, size: int) -> int:
    if isinstance(amount, int) and amount > size:
        raise ArgumentError(f"prune: amount must be at most {size}, what there is. Got {amount}.")
    return amount if isinstance(amount, int) else round(amount * size)


def _axis(t: Tensor, dim: int) -> int:
    if t.ndim < 2 or not -t.ndim <= dim < t.ndim:
        raise ShapeError(
            f"prune: channels need a tensor of 2 axes or more that has axis {dim}. "
            f"Got {describe(t)}."
        )
    return dim % t.ndim


def _without(mask: Tensor, scores: Tensor, count: int) -> Tensor:
    """The mask without the `count` elements of the lowest scores."""
    flat = mask.clone().reshape(-1)
    if count:
        flat[scores.reshape(-1).topk(count, largest=False)[1]] = 0
    return flat.reshape(mask.shape)


def _without_channels(t: Tensor, mask: Tensor, scores: Tensor, dim: int, amount: float) -> Tensor:
    axis = _axis(t, dim)
    count = _count(amount, t.shape[axis])
    keep = _without(zeros_like(scores) + 1, scores, count)
    shape: Sequence[int] = [-1 if i == axis else 1 for i in range(t.ndim)]
    return mask * keep.reshape(shape).to(dtype=mask.dtype)
