"""Checkpoints: one tree with everything that has state, in one file, read back exactly.

The keys are Lightning's where it has one. Every callback, the core ones too, stands under
"callbacks" by its `state_key`: loss scale, metric aggregates, accumulation weights.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minitorch import Tensor, random
from minitorch.autograd.mode import state as mode
from minitorch.errors import ArgumentError, CheckpointError
from minitorch.trainer import schedule_options
from minitorch.trainer.same_value import same_value

if TYPE_CHECKING:
    from minitorch.callbacks import Callback
    from minitorch.trainer.status import Status
    from minitorch.trainer.task import TaskModule

FORMAT = "minitorch-trainer/1"


def build(trainer: Status, *, weights_only: bool) -> dict[str, Any]:
    """The state tree of a run.

    Args:
        weights_only: Only weights and hyper-parameters, as for inference.
    """
    module, position = trainer.module, trainer.position
    tree: dict[str, Any] = {
        "format": FORMAT,
        "epoch": position.epoch,
        "global_step": position.global_step,
        "state_dict": dict(live_state(module)),
        "hyper_parameters": dict(module.hparams),
        "hparams_name": module._task.hparams_name,
        "module": f"{type(module).__module__}.{type(module).__qualname__}",
    }
    if not weights_only:
        tree["callbacks"] = callback_states(trainer.callbacks)
        tree |= update_states(trainer)
        tree["gradients"] = _gradients(trainer)
        tree["loops"] = {"position": position.state_dict(), "data": trainer.data_state()}
        tree["random"] = trainer.training_randomness or random.state_dict()
    log = trainer.metric_log
    scope, log.scope = log.scope, None
    try:
        for call in trainer.events.on_save_checkpoint:
            call(tree)
    finally:
        log.scope = scope
    return tree


def update_states(trainer: Status) -> dict[str, Any]:
    """The states of what updates the weights: optimizers and schedules."""
    return {
        "optimizer_states": [optimizer.state_dict() for optimizer in trainer.optimizers],
        "lr_schedulers": [
            {"scheduler": config.scheduler.state_dict(), "seen": config.seen}
            for config in trainer.lr_scheduler_configs
        ],
    }


def live_state(module: TaskModule) -> Any:
    """The state without the copies that `state_dict` gives during a run: it is written at once."""
    before, mode.snapshots = mode.snapshots, False
    try:
        return module.state_dict()
    finally:
        mode.snapshots = before


def callback_states(callbacks: list[Callback]) -> dict[str, Any]:
    """The states of all callbacks that have one, by key.

    Raises:
        CheckpointError: Two of them have the same key.
    """
    states: dict[str, Any] = {}
    for callback in callbacks:
        state = callback.state_dict()
        if not state:
            continue
        if callback.state_key in states:
            raise CheckpointError(
                "checkpoint: each callback with state needs a key of its own. Got two with "
                f"state_key={callback.state_key!r}. Override state_key to include what tells "
                f"them apart, such as the arguments of {type(callback).__name__}."
            )
        states[callback.state_key] = state
    return states


def _gradients(trainer: Status) -> dict[str, Tensor]:
    """Gradients that the next batches still add to."""
    module = trainer.module
    if module.automatic_optimization and trainer.position.window == 0:
        return {}
    named = module.named_parameters()
    return {name: p.grad for name, p in named if p.grad is not None}


def write(trainer: Status, path: str | os.PathLike[str], *, weights_only: bool) -> None:
    """Builds the tree and writes it; a crash while writing leaves an older file in place."""
    from minitorch.io import save_tree

    target = os.fspath(path)
    tree = build(trainer, weights_only=weights_only)
    make_folder(target)
    save_tree(target, tree)
    trainer.logger_group.after_save_checkpoint(target, trainer.metric_log.results())


def dump(trainer: Status, *, weights_only: bool) -> dict[str, Any]:
    """The state tree with memory of its own."""
    from minitorch.io import snapshot

    return snapshot(build(trainer, weights_only=weights_only))


def make_folder(path: str) -> None:
    """Makes the folder of a file.

    Raises:
        CheckpointError: The file system refused.
    """
    folder = os.path.dirname(path)
    try:
        os.makedirs(folder or ".", exist_ok=True)
    except OSError as error:
        raise CheckpointError(
            f"save: the folder of {path} could not be made ({error}). Pass another path."
        ) from error


def check_hyperparameters(module: TaskModule) -> None:
    """Finds values that no file can hold before hours of training, not at the first save.

    Raises:
        CheckpointError: Names the value.
    """
    from minitorch.io.tree import encode

    encode({"hyper_parameters": dict(module.hparams)})


def read(path: str | os.PathLike[str], *, map_location: Any = None) -> dict[str, Any]:
    """The tree of a file.

    Raises:
        CheckpointError: The file is missing, damaged, or was not written by a Trainer.
    """
    from minitorch.io import load_tree

    if not os.path.exists(path):
        folder = Path(path).parent
        near = sorted(p.name for p in folder.glob("*.ckpt")) if folder.is_dir() else []
        there = f"There are {', '.join(near)}." if near else "It holds no .ckpt files."
        raise CheckpointError(f"checkpoint: no file {os.fspath(path)}. Looked in {folder}. {there}")
    tree = load_tree(path, map_location=map_location)
    if not isinstance(tree, dict) or "state_dict" not in tree:
        raise CheckpointError(
            f"checkpoint: {os.fspath(path)} was not written by a Trainer: it has no 'state_dict'. "
            "Load it with minitorch.load and module.load_state_dict."
        )
    return tree


def load_weights(trainer: Status, tree: dict[str, Any]) -> None:
    """First part: the weights. If they do not fit, hyper-parameters that differ are named, too.

    Raises:
        CheckpointError: Names or shapes are not those of the module.
    """
    module = trainer.module
    try:
        module.load_state_dict(tree["state_dict"], strict=module.strict_loading)
    except CheckpointError as error:
        differing = [_both(name, old, own[name]) for name, old, own in _differing(trainer, tree)]
        if differing:
            error.add_note(f"Its hyper-parameters differ: {'; '.join(differing)}.")
        raise


def apply_callbacks(trainer: Status, tree: dict[str, Any], path: str) -> None:
    """Second part, before on_fit_start: states of callbacks and the position.

    Raises:
        CheckpointError: The file holds weights only.
    """
    if "loops" not in tree:
        raise CheckpointError(
            f"fit: resuming needs the whole state. {path} holds weights only. Load it into the "
            "module with load_from_checkpoint and fit without ckpt_path, or save with "
            "weights_only=False."
        )
    lost = sorted(tree["callbacks"].keys() - {cb.state_key for cb in trainer.callbacks})
    if lost:
        warnings.warn(
            f"fit: every callback with state in {path} should go on. Got none for "
            f"{', '.join(lost)}. Pass the same callbacks with the same arguments, unless they are "
            "meant to start afresh.",
            UserWarning,
            stacklevel=2,
        )
    for callback in trainer.callbacks:
        state = tree["callbacks"].get(callback.state_key)
        if state is not None:
            callback.load_state_dict(state)
    trainer.position.load_state_dict(tree["loops"]["position"])


def compare_options(trainer: Status, tree: dict[str, Any], choice: str | None, path: str) -> None:
    """Raises if hyper-parameters or options of optimizers are not those of the checkpoint.

    With the choice "old" the module's `hparams` get the checkpoint's values.

    Raises:
        ArgumentError: The choice is none.
        TrainerError: Lists the differences, and nobody chose a side.
    """
    if choice not in (None, "old", "new"):
        raise ArgumentError(
            f'Trainer.fit: hparams must be "old" (those of the checkpoint) or "new" (those of the '
            f"module). Got {choice!r}."
        )
    differing = list(_differing(trainer, tree))
    changed = list[str]()
    for optimizer, state in zip(trainer.optimizers, tree["optimizer_states"], strict=False):
        for group, old in zip(optimizer.param_groups, state["param_groups"], strict=False):
            changed += _changed(group, old, bool(differing))
    for config, state in zip(trainer.lr_scheduler_configs, tree["lr_schedulers"], strict=False):
        found = schedule_options.differing(config.scheduler, state["scheduler"])
        changed += [_both(name, old, new) for name, old, new in found]
    options = {text.partition(":")[0] for text in changed}
    changed += [_both(n, old, own[n]) for n, old, own in differing if n not in options]
    if changed and choice is None:
        trainer.checks.error(
            "resume-overrides-or-loses-hyperparameters",
            "Trainer.fit: a resumed run has the hyper-parameters and the options of optimizers and "
            f"schedules of its checkpoint. Got, for {path}, {'; '.join(dict.fromkeys(changed))}. "
            'Pass hparams="new" to go on with those of the module (rates are scaled, schedules '
            'keep their place), or hparams="old".',
        )
    if choice == "old":
        for name, value, own in differing:
            own[name] = value


def _differing(trainer: Status, tree: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """Hyper-parameters of the module and its data that differ: name, saved value, those of now."""
    owners = {
        "hyper_parameters": trainer.module,
        "datamodule_hyper_parameters": trainer.datamodule,
    }
    for key, owner in owners.items():
        saved, own = tree.get(key, {}), getattr(owner, "hparams", {})
        for name in sorted(saved.keys() & own.keys()):
            if not same_value(saved[name], own[name]):
                yield name, saved[name], own


def _changed(group: dict[str, Any], old: dict[str, Any], hparams_differ: bool) -> list[str]:
    """Options that differ. Without a schedule, a rate that differs may be a callback's doing."""
    found = []
    for key in sorted(group.keys() & old.keys() - {"params", "names", "shapes"}):
        if key in ("lr", "momentum", "betas") and "initial_lr" in group:
            continue
        if key == "lr" and not hparams_differ:
            continue
        if not same_value(group[key], old[key]):
            found.append(_both(key, old[key], group[key]))
    return found


def _both(name: str, old: Any, new: Any) -> str:
    return f"{name}: {old!r} in the checkpoint, {new!r} now"


def _take_new(optimizer: Any, fresh: list[dict[str, Any]]) -> None:
    """Puts the options of new groups in place of loaded ones; a rate keeps its schedule's place."""
    for group, new in zip(optimizer.param_groups, fresh, strict=True):
        start = group.get("initial_lr", group["lr"])
        place = group["lr"] / start if start else 1.0
        group.update({k: v for k, v in new.items() if k not in ("params", "names")})
        group["lr"] = new.get("initial_lr", new["lr"]) * place


def apply_loop(trainer: Status, tree: dict[str, Any], *, new: bool = False) -> None:
    """Third part, after on_fit_start: optimizers, schedules, gradients, random streams.

    Args:
        trainer: The run.
        tree: The checkpoint.
        new: Options of the optimizers that the module has now take the place of the saved ones.
    """
    saved, here = tree["optimizer_states"], trainer.optimizers
    if len(saved) != len(here) or len(tree["lr_schedulers"]) != len(trainer.lr_scheduler_configs):
        raise CheckpointError(
            "fit: the task must have the optimizers and schedules that the checkpoint has. "
            f"Got {len(here)} and {len(trainer.lr_scheduler_configs)}, saved were {len(saved)} and "
            f"{len(tree['lr_schedulers'])}. Resume with the same configure_optimizers."
        )
    starts: dict[int, list[dict[str, Any]]] = {}
    for optimizer, state in zip(here, saved, strict=True):
        fresh = starts[id(optimizer)] = [dict(group) for group in optimizer.param_groups]
        optimizer.load_state_dict(state)
        if new:
            _take_new(optimizer, fresh)
        if len(here) == 1:  # an epoch schedule may move before this process's first update
            optimizer.updates = max(optimizer.updates, trainer.position.global_step)
    for config, state in zip(trainer.lr_scheduler_configs, tree["lr_schedulers"], strict=True):
        _place_schedule(config.scheduler, state["scheduler"], starts, new=new)
        config.seen = state["seen"]
    gradients = tree["gradients"]
    for name, parameter in trainer.module.named_parameters():
        gradient = gradients.get(name)
        parameter.grad = None if gradient is None else gradient.to(parameter.device)
    random.load_state_dict(tree["random"])


def _place_schedule(
    schedule: Any, saved: dict[str, Any], starts: dict[int, list[dict[str, Any]]], *, new: bool
) -> None:
    """Puts a schedule where the saved one stood, with the options of the checkpoint or its own."""
    changed = list(schedule_options.differing(schedule, saved)) if new else []
    if changed and not hasattr(schedule, "num_bad_epochs"):
        schedule_options.advance(schedule, starts[id(schedule.optimizer)], saved)
        return
    rates = list(getattr(schedule, "base_lrs", ()))
    schedule.load_state_dict(saved)
    if new and rates:
        schedule.base_lrs = rates
    for name, _, own in changed:
        setattr(schedule, name.rpartition(".")[2], own)
