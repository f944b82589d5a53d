"""BaseFinetuning and BackboneFinetuning: parts of a model start frozen and thaw in stages."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Set
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import refuse
from minitorch.errors import ArgumentError, CheckpointError, TrainerError, listed
from minitorch.nn import Module, Parameter
from minitorch.nn.normalization import _BatchNorm

if TYPE_CHECKING:
    from minitorch.optim import Optimizer
    from minitorch.trainer import TaskModule, Trainer

Modules = Module | Iterable[Any]


def multiplicative(epoch: int) -> float:
    """The default of `BackboneFinetuning`: the rate doubles in every epoch."""
    return 2.0


class BaseFinetuning(Callback):
    """Freezes before optimizers are made, and thaws at the starts of epochs.

    Override `freeze_before_training`, which calls `freeze`, and `finetune_function`, which calls
    `unfreeze_and_add_param_group`. The optimizer of the task takes what is trained at first:
    `filter(lambda p: p.requires_grad, self.parameters())`. A module that is frozen as a whole rests
    in eval mode, so that its statistics and dropout rest as well.
    """

    order = Order.PREPARE

    def __init__(self) -> None:
        self._groups: list[list[dict[str, Any]]] = []
        self._trainable: list[str] | None = None

    def freeze_before_training(self, module: TaskModule) -> None:
        """Freezes what does not train at first."""
        raise NotImplementedError(
            f"{type(self).__name__}: finetuning says what is frozen at first. "
            "Define freeze_before_training(self, module) and call self.freeze(...) in it."
        )

    def finetune_function(self, module: TaskModule, epoch: int, optimizer: Optimizer) -> None:
        """Thaws what begins to train in this epoch; called for each optimizer."""
        raise NotImplementedError(
            f"{type(self).__name__}: finetuning says what thaws when. Define "
            "finetune_function(self, module, epoch, optimizer) and call "
            "self.unfreeze_and_add_param_group(...) in it."
        )

    # Helpers.

    @staticmethod
    def flatten_modules(modules: Modules) -> list[Module]:
        """The modules without children, and those that hold parameters themselves, each once."""
        if isinstance(modules, Module):
            found: Iterable[Module] = modules.modules()
        else:
            items: Any = modules.values() if isinstance(modules, dict) else modules
            found = [part for one in items for part in BaseFinetuning.flatten_modules(one)]
        each = {id(part): part for part in found}.values()
        return [m for m in each if not list(m.children()) or list(m.parameters(recurse=False))]

    @staticmethod
    def filter_params(
        modules: Modules, train_bn: bool = True, requires_grad: bool = True
    ) -> Iterator[Parameter]:
        """The parameters with this `requires_grad`, without batch normalisation if it rests."""
        for part in BaseFinetuning.flatten_modules(modules):
            if train_bn or not isinstance(part, _BatchNorm):
                for parameter in part.parameters(recurse=False):
                    if parameter.requires_grad == requires_grad:
                        yield parameter

    @staticmethod
    def make_trainable(modules: Modules) -> None:
        """Thaws all parameters."""
        for part in BaseFinetuning.flatten_modules(modules):
            for parameter in part.parameters(recurse=False):
                parameter.requires_grad_(True)

    @staticmethod
    def freeze_module(module: Module) -> None:
        """Freezes the parameters of this module itself."""
        for parameter in module.parameters(recurse=False):
            parameter.requires_grad_(False)

    @staticmethod
    def freeze(modules: Modules, train_bn: bool = True) -> None:
        """Freezes all parameters; with `train_bn` batch normalisation goes on training."""
        for part in BaseFinetuning.flatten_modules(modules):
            if train_bn and isinstance(part, _BatchNorm):
                BaseFinetuning.make_trainable(part)
            else:
                BaseFinetuning.freeze_module(part)

    @staticmethod
    def filter_on_optimizer(optimizer: Optimizer, params: Iterable[Parameter]) -> list[Parameter]:
        """The parameters that the optimizer does not have yet; warns if it has some."""
        params = list(params)
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        new = [p for p in params if id(p) not in held]
        before = len(params) - len(new)
        if before:
            warnings.warn(
                f"finetuning: what thaws later joins the optimizer then. Got {before} of "
                f"{len(params)} parameters that {type(optimizer).__name__} has already; they keep "
                "their group and its rate. Build it from "
                "filter(lambda p: p.requires_grad, self.parameters()).",
                UserWarning,
                stacklevel=2,
            )
        return new

    @staticmethod
    def unfreeze_and_add_param_group(
        modules: Modules,
        optimizer: Optimizer,
        lr: float | None = None,
        initial_denom_lr: float = 10.0,
        train_bn: bool = True,
    ) -> None:
        """Thaws modules; their parameters become a new group of the optimizer.

        Args:
            modules: One or several.
            optimizer: Gets the group.
            lr: Rate of the group; default that of the first group over `initial_denom_lr`.
            initial_denom_lr: See `lr`.
            train_bn: Whether parameters of batch normalisation join.
        """
        held = {id(p) for group in optimizer.param_groups for p in group["params"]}
        trained = {id(p) for p in BaseFinetuning.filter_params(modules) if id(p) in held}
        parts = BaseFinetuning.flatten_modules(modules)
        thawing = [part for part in parts if train_bn or not isinstance(part, _BatchNorm)]
        for part in thawing:
            BaseFinetuning.make_trainable(part)
        rate = optimizer.param_groups[0]["lr"] / initial_denom_lr if lr is None else float(lr)
        params = BaseFinetuning.filter_params(thawing)
        new = BaseFinetuning.filter_on_optimizer(
            optimizer, [p for p in params if id(p) not in trained]
        )
        if new:
            optimizer.add_param_group({"params": new, "lr": rate})

    # Events.

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self._groups, self._trainable = [], None

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self.freeze_before_training(module)

    def rest_others(self, module: TaskModule, optimized: Set[int]) -> None:
        """Batch normalisation that no optimizer has yet rests until it joins one.

        Args:
            module: The task.
            optimized: Ids of the parameters that an optimizer has.
        """
        for part in module.modules():
            if isinstance(part, _BatchNorm):
                for parameter in part.parameters():
                    if id(parameter) not in optimized:
                        parameter.requires_grad_(False)

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        if self._trainable is not None:
            self._restore(trainer, module, set(self._trainable))

    def _restore(self, trainer: Trainer, module: TaskModule, trainable: set[str]) -> None:
        """Thaws what had thawed, and adds the groups that had been added."""
        named = dict(module.named_parameters())
        lost = sorted(trainable - named.keys())
        if lost:
            raise CheckpointError(
                f"{type(self).__name__}: a resumed run has the parameters of its checkpoint. "
                f"Missing are {', '.join(lost[:8])}. Resume with the same module."
            )
        for name, parameter in named.items():
            parameter.requires_grad_(name in trainable)
        for optimizer, groups in zip(trainer.optimizers, self._groups, strict=False):
            before = len(optimizer.param_groups)
            for group in groups[before:]:
                params = [(name, named[name]) for name in group["names"]]
                rates = {k: v for k, v in group.items() if k != "names" and v is not None}
                optimizer.add_param_group({"params": params, **rates})
            _tell_schedules(trainer, optimizer, before)

    def on_train_epoch_start(self, trainer: Trainer, module: TaskModule) -> None:
        for optimizer in trainer.optimizers:
            before = len(optimizer.param_groups)
            self.finetune_function(module, trainer.current_epoch, optimizer)
            if len(optimizer.param_groups) > before:
                optimizer.name_parameters(module.named_parameters())
                _tell_schedules(trainer, optimizer, before)
                self._check_owner(trainer, module, optimizer, before)

    def _check_owner(
        self, trainer: Trainer, module: TaskModule, optimizer: Optimizer, before: int
    ) -> None:
        """What thawed has one optimizer; in manual optimization the task may mean it."""
        others = [other for other in trainer.optimizers if other is not optimizer]
        held = {id(p) for other in others for p in _parameters(other)}
        added = [p for group in optimizer.param_groups[before:] for p in group["params"]]
        names = {id(p): name for name, p in module.named_parameters()}
        twice = [names.get(id(p), "one") for p in added if id(p) in held]
        if twice and module.automatic_optimization:
            raise TrainerError(
                f"{type(self).__name__}: each parameter belongs to one optimizer. Got "
                f"{listed(twice)} in two of them. Add what thaws to one: finetune_function is told "
                "for which optimizer it is called."
            )

    # State.

    def state_dict(self) -> dict[str, Any]:
        trainer = self._trainer
        if trainer is None or not trainer.optimizers:
            return {}
        named = trainer.module.named_parameters()
        return {
            "trainable": [name for name, p in named if p.requires_grad],
            "groups": [
                [
                    {"names": list(g["names"]), "lr": g["lr"], "initial_lr": g.get("initial_lr")}
                    for g in o.param_groups
                ]
                for o in trainer.optimizers
            ],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._trainable, self._groups = state_dict["trainable"], state_dict["groups"]


def _parameters(optimizer: Optimizer) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _tell_schedules(trainer: Trainer, optimizer: Optimizer, before: int) -> None:
    """A schedule that scales the rates of groups does so for those from `before` on, too."""
    if not trainer.lr_scheduler_configs:
        return
    first = optimizer.param_groups[0]
    place = first["lr"] / first.get("initial_lr", first["lr"]) if first["lr"] else 1.0
    for group in optimizer.param_groups[before:]:
        group.setdefault("initial_lr", float(group["lr"]) / place)
        if "swa_lr" in first:  # the rate at which SWALR ends
            group.setdefault("swa_lr", first["swa_lr"])
    for config in trainer.lr_scheduler_configs:
        _extend(config.scheduler, optimizer)


def _extend(schedule: Any, optimizer: Optimizer) -> None:
    if getattr(schedule, "optimizer", None) is not optimizer:
        return
    lists = {"base_lrs": "initial_lr", "_last_lr": "lr"}
    for name, key in lists.items():
        rates = getattr(schedule, name, None)
        if isinstance(rates, list):
            rates += [group[key] for group in optimizer.param_groups[len(rates) :]]
    functions = getattr(schedule, "lr_lambdas", None)
    if functions:
        functions += [functions[-1]] * (len(optimizer.param_groups) - len(functions))
    for part in getattr(schedule, "_schedulers", ()):
        _extend(part, optimizer)


class BackboneFinetuning(BaseFinetuning):
    """Trains everything but `module.backbone` first, then the backbone at a rate that grows.

    With several optimizers the backbone thaws in the one that holds it, at the rate that it has
    there.

    Args:
        unfreeze_backbone_at_epoch: First epoch in which the backbone trains.
        lambda_func: Factor of the backbone's rate in an epoch, from that epoch's number.
        backbone_initial_ratio_lr: First rate of the backbone, as a share of the others' rate.
        backbone_initial_lr: That rate itself, instead.
        should_align: The rate of the backbone stays at that of the others once it reaches it.
        initial_denom_lr: As in `unfreeze_and_add_param_group`; not used here, as in Lightning.
        train_bn: Batch normalisation of the backbone trains from the start.
        verbose: Print both rates in every epoch.
        rounding: Digits that are printed.
    """

    def __init__(
        self,
        unfreeze_backbone_at_epoch: int = 10,
        lambda_func: Callable[[int], float] = multiplicative,
        backbone_initial_ratio_lr: float = 10e-2,
        backbone_initial_lr: float | None = None,
        should_align: bool = True,
        initial_denom_lr: float = 10.0,
        train_bn: bool = True,
        verbose: bool = False,
        rounding: int = 12,
    ) -> None:
        super().__init__()
        self.unfreeze_backbone_at_epoch = unfreeze_backbone_at_epoch
        self.lambda_func = lambda_func
        self.backbone_initial_ratio_lr = backbone_initial_ratio_lr
        self.backbone_initial_lr = backbone_initial_lr
        self.should_align = should_align
        self.initial_denom_lr = initial_denom_lr
        self.train_bn = train_bn
        self.verbose = verbose
        self.rounding = rounding
        self.previous_backbone_lr: float | None = None

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        super().setup(trainer, module, stage)
        if stage != "fit":
            return
        at = self.unfreeze_backbone_at_epoch
        if type(at) is not int or at < 0:
            refuse("BackboneFinetuning", "unfreeze_backbone_at_epoch", at, "an integer ≥ 0")
        self.previous_backbone_lr = None

    def freeze_before_training(self, module: TaskModule) -> None:
        backbone = getattr(module, "backbone", None)
        if not isinstance(backbone, Module):
            raise ArgumentError(
                "BackboneFinetuning: the part that thaws later is the attribute `backbone`, a "
                f"Module. Got {type(backbone).__name__} in {type(module).__name__}. Name it so, or "
                "derive from BaseFinetuning."
            )
        self.freeze(backbone, train_bn=self.train_bn)

    def finetune_function(self, module: TaskModule, epoch: int, optimizer: Optimizer) -> None:
        backbone: Any = module.backbone
        if not self._is_for(optimizer, backbone):
            return
        current = optimizer.param_groups[0]["lr"]
        if epoch == self.unfreeze_backbone_at_epoch:
            first = self.backbone_initial_lr
            first = current * self.backbone_initial_ratio_lr if first is None else first
            held = {id(p) for p in _parameters(optimizer)}
            several = self._trainer is not None and len(self._trainer.optimizers) > 1
            if several and all(id(p) in held for p in backbone.parameters()):
                parts = self.flatten_modules(backbone)  # which have their own rate there
                rests = () if self.train_bn else _BatchNorm
                self.make_trainable([part for part in parts if not isinstance(part, rests)])
                return
            self.previous_backbone_lr = first
            self.unfreeze_and_add_param_group(
                backbone,
                optimizer,
                first,
                initial_denom_lr=self.initial_denom_lr,
                train_bn=self.train_bn,
            )
            self._show(current, first)
        elif epoch > self.unfreeze_backbone_at_epoch and self.previous_backbone_lr is not None:
            if len(optimizer.param_groups) < 2:
                return
            following = self.lambda_func(epoch + 1) * self.previous_backbone_lr
            if self.should_align and following > current:
                following = current
            optimizer.param_groups[-1]["lr"] = following
            self.previous_backbone_lr = following
            self._show(current, following)

    def _is_for(self, optimizer: Optimizer, backbone: Module) -> bool:
        """Whether the backbone joins this optimizer; of several, one must hold it already."""
        trainer = self._trainer
        if trainer is None or len(trainer.optimizers) == 1:
            return True
        own = {id(p) for p in backbone.parameters()}
        holders = [o for o in trainer.optimizers if any(id(p) in own for p in _parameters(o))]
        if not holders:
            raise TrainerError(
                "BackboneFinetuning: with several optimizers one of them holds the backbone. Got "
                f"{len(trainer.optimizers)} without it. Pass self.backbone.parameters() to the "
                "one that shall train it, or derive from BaseFinetuning."
            )
        return optimizer is holders[0]

    def _show(self, current: float, backbone: float) -> None:
        if self.verbose and self._trainer is not None:
            digits = self.rounding
            self._trainer.print(
                f"BackboneFinetuning: rate {round(current, digits)}, "
                f"of the backbone {round(backbone, digits)}"
            )

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        return {**state, "previous_backbone_lr": self.previous_backbone_lr} if state else {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self.previous_backbone_lr = state_dict["previous_backbone_lr"]
