"""What configure_optimizers returns, read and checked; and optimizers for manual use."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.core.schedules import LRSchedulerConfig
from minitorch.callbacks.monitor import contradicts
from minitorch.errors import TrainerError, describe, listed
from minitorch.trainer import preflight
from minitorch.trainer.options import explain_option
from minitorch.trainer.several import Named

if TYPE_CHECKING:
    from minitorch import Tensor
    from minitorch.optim import Optimizer
    from minitorch.trainer.task import TaskModule
    from minitorch.trainer.trainer import Trainer

FORMS = (
    "an optimizer, a list of optimizers, two lists (optimizers, schedules), a dict with "
    '"optimizer" and optionally "lr_scheduler" and "monitor", or a dict of names with any of these'
)
_DICT_KEYS = ("optimizer", "lr_scheduler", "monitor")
_NAMED_KEYS = (*_DICT_KEYS, "frequency")
_CONFIG_KEYS = (
    "scheduler",
    "name",
    "interval",
    "frequency",
    "monitor",
    "reduce_on_plateau",
    "strict",
)


def configure(module: TaskModule) -> tuple[list[Optimizer], list[LRSchedulerConfig]]:
    """Calls `module.configure_optimizers` and checks what came.

    Returns:
        The optimizers, told the names of their parameters, and the schedules.

    Raises:
        TrainerError: It is missing, returned something else, or does not cover the module.
    """
    if "optimizer_idx" in inspect.signature(module.training_step).parameters:
        raise TrainerError(
            "training_step: optimizers are told apart by name, not by number. Got a training_step "
            "that takes optimizer_idx. Return a dict of names from configure_optimizers, and "
            'write `yield "generator", loss` for each in training_step.'
        )
    try:
        returned = module.configure_optimizers()
    except TypeError as error:
        explain_option(error)
        raise
    if returned is None and module.automatic_optimization:
        raise TrainerError(
            f"configure_optimizers: it must return {FORMS}. Got None. Add the return statement, or "
            "set self.automatic_optimization = False for a task without an optimizer."
        )
    named: dict[str, Named] = {}
    if isinstance(returned, Mapping) and not _is_one(returned):
        named, configs = _read_named(returned)
        optimizers = [entry.optimizer for entry in named.values()]
    else:
        optimizers, configs = _read(returned)
    if len(optimizers) > 1 and module.automatic_optimization and not named:
        raise TrainerError(
            "configure_optimizers: several optimizers of automatic optimization have names, under "
            f"which training_step gives their losses. Got {len(optimizers)} without. Return a dict "
            '{"generator": optimizer, "discriminator": optimizer}, use parameter groups of one '
            "optimizer, or set self.automatic_optimization = False and step them yourself."
        )
    module.trainer.named = named if module.automatic_optimization else {}
    for optimizer in optimizers:
        if module.automatic_optimization and getattr(optimizer, "needs_closure", False):
            raise TrainerError(
                "configure_optimizers: automatic optimization computes the loss once for an "
                f"update. Got {type(optimizer).__name__}, which computes it several times. Set "
                "self.automatic_optimization = False and call "
                "self.optimizers().step(closure) in training_step."
            )
    _check_parameters(module, optimizers)
    if module.trainer.named:
        _check_shared(module, named)
    for config in configs:
        preflight.choose_unit(module.trainer, config, named=config.interval_named)
        _check_direction(module, config)
    for optimizer in optimizers:
        optimizer.name_parameters(module.named_parameters())
    return optimizers, configs


def _read(returned: Any) -> tuple[list[Optimizer], list[LRSchedulerConfig]]:
    if returned is None:
        return [], []
    if _is_optimizer(returned):
        return [returned], []
    if isinstance(returned, Mapping):
        return _read_dict(returned)
    if isinstance(returned, list | tuple):
        items = list(returned)
        if len(items) == 2 and all(isinstance(item, list | tuple) for item in items):
            optimizers = list(items[0])
            for optimizer in optimizers:
                _check_optimizer(optimizer)
            return optimizers, [_read_config(item, None) for item in items[1]]
        if items and all(isinstance(item, Mapping) for item in items):
            pairs = [_read_dict(item) for item in items]
            return [o for one, _ in pairs for o in one], [c for _, more in pairs for c in more]
        if items and all(map(_is_optimizer, items)):
            return items, []
    raise TrainerError(f"configure_optimizers: it must return {FORMS}. Got {_text(returned)}.")


def _read_dict(entry: Mapping[str, Any]) -> tuple[list[Optimizer], list[LRSchedulerConfig]]:
    _check_keys(entry, _DICT_KEYS, "the dict")
    if "optimizer" not in entry:
        raise TrainerError(
            'configure_optimizers: the dict needs the key "optimizer". '
            f"Got {', '.join(map(repr, entry)) or 'an empty dict'}."
        )
    _check_optimizer(entry["optimizer"])
    scheduler = entry.get("lr_scheduler")
    if scheduler is None:
        return [entry["optimizer"]], []
    return [entry["optimizer"]], [_read_config(scheduler, entry.get("monitor"))]


def _is_one(entry: Mapping[str, Any]) -> bool:
    """Whether a dict describes one optimizer, perhaps with a key misspelt."""
    typed = len(entry) == 1 and difflib.get_close_matches(str(*entry), _DICT_KEYS, n=1)
    return bool(typed or not entry or entry.keys() & set(_DICT_KEYS))


def _read_named(entries: Mapping[str, Any]) -> tuple[dict[str, Named], list[LRSchedulerConfig]]:
    named: dict[str, Named] = {}
    configs: list[LRSchedulerConfig] = []
    for name, entry in entries.items():
        frequency = 1
        if isinstance(entry, Mapping):
            _check_keys(entry, _NAMED_KEYS, repr(name))
            frequency = entry.get("frequency", 1)
            own, more = _read_dict({k: v for k, v in entry.items() if k != "frequency"})
        elif _is_optimizer(entry):
            own, more = [entry], []
        else:
            known = ", ".join(map(repr, entries))
            raise TrainerError(
                f"configure_optimizers: it must return {FORMS}. Got a dict with the keys {known}, "
                f"and {_text(entry)} under {name!r}."
            )
        if not isinstance(name, str) or not name or name == "loss":
            raise TrainerError(
                "configure_optimizers: the name of an optimizer is a text, and not 'loss', which "
                f"is the loss of a task with one. Got {name!r}. Rename it."
            )
        if type(frequency) is not int or frequency < 1:
            raise TrainerError(
                f"configure_optimizers: frequency of {name!r} is the number of updates of the "
                f"others for each of its own, an integer ≥ 1. Got {frequency!r}."
            )
        for config in more:
            config.optimizer = own[0]
        named[name] = Named(name, own[0], frequency)
        configs += more
    if named and all(entry.frequency > 1 for entry in named.values()):
        raise TrainerError(
            "configure_optimizers: one optimizer at least takes part in every update. Got "
            f"{', '.join(f'{e.name} in every {e.frequency}.' for e in named.values())} Divide "
            "the frequencies by their smallest."
        )
    return named, configs


def _check_shared(module: TaskModule, named: Mapping[str, Named]) -> None:
    """Each parameter has one optimizer; the module's backward takes the parameters of a loss."""
    names = {id(p): name for name, p in module.named_parameters()}
    owner: dict[int, str] = {}
    for entry in named.values():
        for parameter in [p for group in entry.optimizer.param_groups for p in group["params"]]:
            other = owner.setdefault(id(parameter), entry.name)
            if other != entry.name:
                raise TrainerError(
                    "configure_optimizers: each parameter belongs to one optimizer. Got "
                    f"{names.get(id(parameter), 'one')} in {other!r} and {entry.name!r}. Leave it "
                    "out of one of them, or add the losses and use one optimizer."
                )
    backward = inspect.signature(module.backward).parameters.values()
    if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in backward):
        raise TrainerError(
            "backward: with several optimizers it is told the parameters that a loss is for. Got "
            f"{type(module).__name__}.backward without them. Define `def backward(self, loss, "
            "**options):` and call loss.backward(**options)."
        )


def _read_config(entry: Any, monitor: str | None) -> LRSchedulerConfig:
    values = dict(entry) if isinstance(entry, Mapping) else {"scheduler": entry}
    _check_keys(values, _CONFIG_KEYS, "lr_scheduler")
    scheduler = values.get("scheduler")
    if not hasattr(scheduler, "step") or not hasattr(scheduler, "state_dict"):
        raise TrainerError(
            "configure_optimizers: a schedule is an object of minitorch.optim.lr_scheduler. "
            f'Got {_text(scheduler)}. Give it as lr_scheduler, or under "scheduler" in its dict.'
        )
    values.setdefault("monitor", monitor)
    values["interval_named"] = "interval" in values
    plateau = type(scheduler).__name__ == "ReduceLROnPlateau"
    values.setdefault("reduce_on_plateau", plateau)
    config = LRSchedulerConfig(**values)
    if config.interval not in ("epoch", "step"):
        raise TrainerError(
            'configure_optimizers: interval of a schedule must be "epoch" or "step". '
            f"Got {config.interval!r}."
        )
    if type(config.frequency) is not int or config.frequency < 1:
        raise TrainerError(
            "configure_optimizers: frequency of a schedule must be an integer ≥ 1. "
            f"Got {config.frequency!r}."
        )
    if config.reduce_on_plateau and config.monitor is None:
        raise TrainerError(
            f"configure_optimizers: {type(scheduler).__name__} watches a metric and must be told "
            'which. Got no monitor. Return {"optimizer": ..., "lr_scheduler": ..., '
            '"monitor": "val/loss"}.'
        )
    return config


def _check_keys(entry: Mapping[str, Any], known: Sequence[str], what: str) -> None:
    for key in entry:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, n=1)
            hint = f"Did you mean {close[0]!r}?" if close else f"Known are {', '.join(known)}."
            raise TrainerError(f"configure_optimizers: {what} has an unknown key {key!r}. {hint}")


def _is_optimizer(value: Any) -> bool:
    return hasattr(value, "param_groups") and hasattr(value, "step")


def _check_optimizer(value: Any) -> None:
    if not _is_optimizer(value):
        raise TrainerError(
            f"configure_optimizers: an optimizer was expected. Got {_text(value)}. "
            "Use a class of minitorch.optim."
        )


def _text(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__} (make an object of it)"
    if isinstance(value, list | tuple):
        return f"{type(value).__name__} of {', '.join(_text(v) for v in value) or 'nothing'}"
    return describe(value)


def _check_parameters(module: TaskModule, optimizers: list[Optimizer]) -> None:
    if not optimizers:
        return
    own = {id(p): name for name, p in module.named_parameters()}
    optimized = {id(p) for o in optimizers for group in o.param_groups for p in group["params"]}
    for callback in module.trainer.callbacks:
        callback.rest_others(module, optimized)
    strangers = len(optimized - own.keys())
    if strangers:
        raise TrainerError(
            "configure_optimizers: optimizers hold parameters of this module. "
            f"Got {strangers} of {len(optimized)} that are not in it, as after deepcopy or "
            "replacing a layer. Build the optimizer from self.parameters() inside "
            "configure_optimizers."
        )
    left = [n for n, p in module.named_parameters() if p.requires_grad and id(p) not in optimized]
    if left:
        raise TrainerError(
            "configure_optimizers: every trainable parameter must be in an optimizer. "
            f"Missing are {listed(left)}. Pass them too, or freeze them: requires_grad_(False)."
            f" The optimizer was built in {_place(module.configure_optimizers)}."
        )


def _check_direction(module: TaskModule, config: LRSchedulerConfig) -> None:
    """A plateau schedule waits for the change that its metric's name says is better."""
    mode = getattr(config.scheduler, "mode", None)
    checks = module.trainer.checks
    if not config.reduce_on_plateau or not contradicts(str(config.monitor), mode):
        return
    if not checks.meant("monitor-mode-wrong"):
        other = "max" if mode == "min" else "min"
        checks.error(
            "monitor-mode-wrong",
            f"configure_optimizers: the direction of a monitor fits its name. Got "
            f'mode="{mode}" for {config.monitor!r}; {type(config.scheduler).__name__} has '
            f'mode="min" by default. Did you mean mode="{other}"?',
        )


def _place(method: Any) -> str:
    code = getattr(method, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code is not None else str(method)


class ManualOptimizer:
    """An optimizer for `automatic_optimization = False`: `step` runs the Trainer's events.

    Everything else is the optimizer itself.
    """

    def __init__(self, optimizer: Optimizer, trainer: Trainer) -> None:
        self.optimizer = optimizer
        self._trainer = trainer

    def step(self, closure: Any = None) -> Any:
        """Applies the update (unscaled first under a loss scaler).

        Args:
            closure: Computes the loss and gradients; called before the update.
        """
        loss = None if closure is None else closure()
        self._trainer.manual_step(self.optimizer, loss)
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clears the gradients of this optimizer's parameters."""
        for call in self._trainer.events.on_before_zero_grad:
            call(self.optimizer)
        self.optimizer.zero_grad(set_to_none=set_to_none)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.optimizer, name)

    def __repr__(self) -> str:
        return f"ManualOptimizer({self.optimizer!r})"


def toggle(module: TaskModule, optimizer: Any) -> list[tuple[Tensor, bool]]:
    """Lets only the parameters of one optimizer require gradients.

    Returns:
        Each parameter of the module with what its flag was.
    """
    chosen = {id(p) for group in optimizer.param_groups for p in group["params"]}
    before: list[tuple[Tensor, bool]] = [(p, p.requires_grad) for p in module.parameters()]
    for parameter, required in before:
        if required and id(parameter) not in chosen:
            parameter.requires_grad_(False)
    return before
