"""ModelPruning: parts of weights are set to 0 at the ends of epochs and stay there."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from minitorch import Parameter, no_grad
from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.monitor import refuse
from minitorch.callbacks.weight_averaging import WeightAveraging
from minitorch.errors import ArgumentError
from minitorch.nn import Module, ModuleDict, ModuleList, Sequential, tree
from minitorch.nn.utils import prune

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

Pairs = Sequence[tuple[Module, str]]
METHODS: dict[str, tuple[type[prune.BasePruningMethod], Callable[..., Any]]] = {
    "ln_structured": (prune.LnStructured, prune.ln_structured),
    "l1_unstructured": (prune.L1Unstructured, prune.l1_unstructured),
    "random_structured": (prune.RandomStructured, prune.random_structured),
    "random_unstructured": (prune.RandomUnstructured, prune.random_unstructured),
}
MASKS = "pruning_masks"
_WHO = "ModelPruning"


class ModelPruning(Callback):
    """Prunes weights with `nn.utils.prune` at the end of each epoch, more of them each time.

    Checkpoints hold the pruned weights as ordinary ones (`make_pruning_permanent`) and the masks
    beside, so that a resumed run goes on exactly.

    Args:
        pruning_fn: "l1_unstructured", "random_unstructured", "ln_structured", "random_structured",
            or a subclass of `nn.utils.prune.BasePruningMethod`.
        parameters_to_prune: Pairs (module, name); default all that have a name of
            `parameter_names`. Override `filter_parameters_to_prune` to choose among them.
        parameter_names: "weight", "bias" or both (the default).
        use_global_unstructured: Prune all tensors as if they were one.
        amount: How many elements (int), which share of them (float), or a function of the epoch.
        apply_pruning: Whether to prune, or a function of the epoch that says so.
        make_pruning_permanent: Pruned weights are ordinary ones in checkpoints and at the end.
        use_lottery_ticket_hypothesis: Set what is left back to its values before training, or a
            function of the epoch that says so.
        resample_parameters: Then draw new values instead.
        pruning_dim: Axis for structured methods.
        pruning_norm: Order of the norm for "ln_structured".
        verbose: 1 prints the share of zeros, 2 also by tensor.
        prune_on_train_epoch_end: False prunes after validations instead, before the next batch.

    Source: The Lottery Ticket Hypothesis, Frankle and Carbin, 2019.
    """

    order = Order.DECIDE
    PARAMETER_NAMES = ("weight", "bias")

    def __init__(
        self,
        pruning_fn: str | type[prune.BasePruningMethod],
        parameters_to_prune: Pairs = (),
        parameter_names: Sequence[str] | None = None,
        use_global_unstructured: bool = True,
        amount: int | float | Callable[[int], int | float] = 0.5,
        apply_pruning: bool | Callable[[int], bool] = True,
        make_pruning_permanent: bool = True,
        use_lottery_ticket_hypothesis: bool | Callable[[int], bool] = True,
        resample_parameters: bool = False,
        pruning_dim: int | None = None,
        pruning_norm: int | None = None,
        verbose: int = 0,
        prune_on_train_epoch_end: bool = True,
    ) -> None:
        self.pruning_fn = pruning_fn
        self.parameters_to_prune = parameters_to_prune
        self.parameter_names = parameter_names
        self.use_global_unstructured = use_global_unstructured
        self.amount = amount
        self.apply = apply_pruning
        self.permanent = make_pruning_permanent
        self.lottery = use_lottery_ticket_hypothesis
        self.resample_parameters = resample_parameters
        self.pruning_dim = pruning_dim
        self.pruning_norm = pruning_norm
        self.verbose = verbose
        self.prune_on_train_epoch_end = prune_on_train_epoch_end
        self._pairs: dict[str, tuple[Module, str]] = {}
        self._originals: dict[str, Any] = {}
        self._layers: dict[int, Module] = {}
        self._masks: dict[str, Any] = {}  # of a run that has ended
        self._pending = self._ready = False

    def filter_parameters_to_prune(self, parameters_to_prune: Pairs = ()) -> Pairs:
        """Override it to leave some of the pairs out."""
        return parameters_to_prune

    @property
    def writes(self) -> dict[str, Any]:  # type: ignore[override]
        """Weights, at the end of an epoch or before the batch after a validation."""
        after = self.prune_on_train_epoch_end
        return {"weights": "on_train_epoch_end" if after else "on_train_batch_start"}

    # Start.

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage != "fit":
            return
        self._check_arguments()
        if any(isinstance(callback, WeightAveraging) for callback in trainer.callbacks):
            raise ArgumentError(
                f"{_WHO}: pruning gives weights other names and masks, which an average does not "
                "follow. Got a WeightAveraging as well. Prune first, and average in a second fit."
            )
        self._ready = self._pending = False
        self._pairs, self._originals, self._layers, self._masks = {}, {}, {}, {}

    def _check_arguments(self) -> None:
        names, method, amount = self.parameter_names, self.pruning_fn, self.amount
        if names and set(names) - set(self.PARAMETER_NAMES):
            refuse(_WHO, "parameter_names", names, 'a list of "weight" and "bias"')
        is_class = isinstance(method, type) and issubclass(method, prune.BasePruningMethod)
        if not is_class and str(method).lower() not in METHODS:
            known = ", ".join(map(repr, METHODS))
            refuse(_WHO, "pruning_fn", method, f"one of {known}, or a BasePruningMethod class")
        if is_class and not self.use_global_unstructured:
            refuse(
                _WHO,
                "pruning_fn",
                method,
                "a name with use_global_unstructured=False",
                "A class is used for all tensors together.",
            )
        kind = self._method
        if self.use_global_unstructured and kind.PRUNING_TYPE != "unstructured":
            refuse(
                _WHO,
                "use_global_unstructured",
                True,
                f"False with {kind.__name__}, which is {kind.PRUNING_TYPE}",
            )
        if kind.PRUNING_TYPE == "structured" and self.pruning_dim is None:
            refuse(_WHO, "pruning_dim", None, "the axis of a structured method", "Pass 0.")
        if kind is prune.LnStructured and self.pruning_norm is None:
            refuse(_WHO, "pruning_norm", None, "the order of the norm", "Pass 2.")
        number = isinstance(amount, int | float) and not isinstance(amount, bool)
        if not number and not callable(amount):
            refuse(_WHO, "amount", amount, "a number or a function of the epoch")
        if self.verbose not in (0, 1, 2):
            refuse(_WHO, "verbose", self.verbose, "0, 1 or 2")

    @property
    def _method(self) -> type[prune.BasePruningMethod]:
        method = self.pruning_fn
        return METHODS[method.lower()][0] if isinstance(method, str) else method

    def on_setup_end(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        if stage == "fit":
            self._prepare(module)

    def _prepare(self, module: TaskModule) -> None:
        """Chooses what is pruned and keeps its first values; once, before anything is pruned."""
        if self._ready:
            return
        self._ready = True
        paths = {id(part): path for path, part in module.named_modules()}
        for part, name in self.filter_parameters_to_prune(self._chosen(module)):
            self._pairs[tree.join(paths[id(part)], name)] = (part, name)
        if self.lottery is not False:
            for path, (part, name) in self._pairs.items():
                self._originals[path] = getattr(part, name).detach().clone()
                if self.resample_parameters and id(part) not in self._layers:
                    self._layers[id(part)] = copy.deepcopy(part)

    def _chosen(self, module: TaskModule) -> Pairs:
        containers = (type(module), Sequential, ModuleList, ModuleDict)
        parts = [part for part in module.modules() if not isinstance(part, containers)]
        every = [id(p) for _, p in module.named_parameters(remove_duplicate=False)]
        if not self.parameters_to_prune:
            return [
                (part, name)
                for name in self.parameter_names or self.PARAMETER_NAMES
                for part in parts
                if isinstance(getattr(part, name, None), Parameter)
                and every.count(id(getattr(part, name))) == 1
            ]
        pairs = self.parameters_to_prune
        known = {id(part) for part in parts}
        for pair in pairs:
            part, name = pair if isinstance(pair, tuple | list) and len(pair) == 2 else (None, "")
            held = getattr(part, str(name), None) if id(part) in known else None
            if not isinstance(held, Parameter) or every.count(id(held)) != 1:
                refuse(
                    _WHO,
                    "parameters_to_prune",
                    pair,
                    "pairs of a layer of the module and the name of its parameter",
                    "A parameter that several layers share cannot be pruned in one of them.",
                )
        return pairs

    # Pruning.

    def listens(self, event: str) -> bool:
        if event == "on_train_batch_start":
            return not self.prune_on_train_epoch_end
        return super().listens(event)

    def on_train_epoch_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self.prune_on_train_epoch_end or self._pending:
            self._run(trainer, module)

    def on_validation_end(self, trainer: Trainer, module: TaskModule) -> None:
        if trainer.stage == "fit" and not trainer.sanity_checking:
            self._pending = not self.prune_on_train_epoch_end

    def on_train_batch_start(
        self, trainer: Trainer, module: TaskModule, batch: Any, batch_idx: int
    ) -> None:
        if self._pending and trainer.position.window == 0:
            self._run(trainer, module)

    def _run(self, trainer: Trainer, module: TaskModule) -> None:
        self._pending = False
        epoch = trainer.current_epoch
        amount = self.amount(epoch) if callable(self.amount) else self.amount
        if not amount or not _answer(self.apply, epoch):
            return
        before = self._zeros()
        self.apply_pruning(amount)
        if _answer(self.lottery, epoch):
            self.apply_lottery_ticket_hypothesis()
        for optimizer in trainer.optimizers:
            optimizer.name_parameters(module.named_parameters())
        if self.verbose:
            self._show(trainer, before, self._zeros())

    def apply_pruning(self, amount: int | float) -> None:
        """Prunes so much of what is left.

        Args:
            amount: A number of elements or channels (int), or a share (float).
        """
        options = {"amount": amount, "n": self.pruning_norm, "dim": self.pruning_dim}
        if self.use_global_unstructured:
            taken = inspect.signature(self._method).parameters
            chosen = {k: v for k, v in options.items() if k in taken}
            prune.global_unstructured(list(self._pairs.values()), self._method, **chosen)
            return
        function = METHODS[str(self.pruning_fn).lower()][1]
        chosen = {k: v for k, v in options.items() if k in inspect.signature(function).parameters}
        for part, name in self._pairs.values():
            function(part, name, **chosen)

    def apply_lottery_ticket_hypothesis(self) -> None:
        """Sets what is left back to its first values, or draws new ones."""
        drawn = {}
        for key, layer in self._layers.items():
            again = copy.deepcopy(layer)
            reset = getattr(again, "reset_parameters", None)
            if callable(reset):
                reset()
                drawn[key] = again
        with no_grad():
            for path, (part, name) in self._pairs.items():
                target = getattr(part, name + "_orig", None)
                if target is None or path not in self._originals:
                    continue
                first = self._originals[path]
                if id(part) in drawn:
                    first = getattr(drawn[id(part)], name).detach()
                target.copy_(first.to(target.device))
                vars(part)[name] = target * getattr(part, name + "_mask")

    def make_pruning_permanent(self, module: Module) -> None:
        """Makes ordinary parameters of all pruned weights of a module."""
        for part in module.modules():
            for name in self.PARAMETER_NAMES:
                if isinstance(getattr(part, name + "_orig", None), Parameter):
                    prune.remove(part, name)

    def on_train_end(self, trainer: Trainer, module: TaskModule) -> None:
        if self.permanent:
            self._masks = self._present_masks()
            self.make_pruning_permanent(module)

    def _present_masks(self) -> dict[str, Any]:
        pairs = self._pairs.items()
        masks = {path: getattr(part, name + "_mask", None) for path, (part, name) in pairs}
        return {path: mask.detach() for path, mask in masks.items() if mask is not None}

    def _zeros(self) -> dict[str, tuple[int, int]]:
        found = {}
        for path, (part, name) in self._pairs.items():
            mask = getattr(part, name + "_mask", None)
            size = getattr(part, name).numel()
            found[path] = (0 if mask is None else int((mask == 0).sum().item()), size)
        return found

    def _show(self, trainer: Trainer, before: dict[str, Any], after: dict[str, Any]) -> None:
        def text(zeros: int, size: int) -> str:
            return f"{zeros}/{size} ({zeros / max(size, 1):.2%})"

        size = sum(n for _, n in after.values())
        sums = (sum(zeros for zeros, _ in side.values()) for side in (before, after))
        trainer.print(f"{_WHO}: zeros {' → '.join(text(zeros, size) for zeros in sums)}")
        if self.verbose == 2:
            for path in after:
                trainer.print(f"  {path}: {text(*before[path])} → {text(*after[path])}")

    # Checkpoints.

    def on_save_checkpoint(
        self, trainer: Trainer, module: TaskModule, checkpoint: dict[str, Any]
    ) -> None:
        if not self.permanent:
            return
        state, merged = checkpoint["state_dict"], {}
        for name, value in state.items():
            stem = name.removesuffix("_orig")
            if stem != name and f"{stem}_mask" in state:
                merged[stem] = (value * state[f"{stem}_mask"]).detach()
            elif not (name.endswith("_mask") and f"{name.removesuffix('_mask')}_orig" in state):
                merged[name] = value
        masks = self._present_masks() or self._masks
        if masks and "loops" in checkpoint:
            checkpoint[MASKS] = masks
        checkpoint["state_dict"] = merged

    def on_load_checkpoint(
        self, trainer: Trainer, module: TaskModule, checkpoint: dict[str, Any]
    ) -> None:
        state, masks = checkpoint["state_dict"], checkpoint.get(MASKS, {})
        if trainer.stage == "fit":
            self._prepare(module)
            for path, mask in masks.items():
                if path in state:
                    state[f"{path}_orig"], state[f"{path}_mask"] = state.pop(path), mask
        for name in list(state):
            path = name.removesuffix("_mask")
            if path != name and f"{path}_orig" in state:
                part, key = tree.locate(module, path)
                if isinstance(getattr(part, key, None), Parameter):
                    prune.identity(part, key)

    def state_dict(self) -> dict[str, Any]:
        return {"originals": self._originals, "pending": self._pending}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self._originals, self._pending = dict(state_dict["originals"]), state_dict["pending"]


def _answer(value: bool | Callable[[int], bool], epoch: int) -> bool:
    return bool(value(epoch) if callable(value) else value)
