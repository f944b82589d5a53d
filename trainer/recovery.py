"""Steps that diverged: who can put the run right is asked, and the run goes on behind the batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minitorch.errors import DivergenceError
from minitorch.trainer.checkpoint import live_state, update_states
from minitorch.trainer.saving import Saving

if TYPE_CHECKING:
    from minitorch.callbacks import Callback
    from minitorch.trainer.trainer import Trainer


def recover(trainer: Trainer, error: DivergenceError) -> bool:
    """Lets a callback restore a good state after a failed step; raises the error if none does.

    What callbacks see is the state before the step's accumulation window. Then the run stands
    behind the failed batch, whose window is lost.

    Returns:
        That the epoch goes on.
    """
    position = trainer.position
    behind = position.batch + 1, position.batches + 1
    error.batch = position.batch
    trainer.progress.close_cut(trainer)
    trainer.batch_was_cut, trainer.saving = True, Saving.NOW
    cures = [call(error) for call in trainer.events.on_divergence]
    cure = next((cure for cure in cures if cure is not None), None)
    if cure is None:
        raise error
    cure()
    trainer.batch_was_cut = False
    position.batch, position.batches = behind
    position.window = position.learned = 0
    position.validated = False
    trainer.progress.count_skipped("a step diverged and was rolled back")
    trainer.precision.close_round(trainer)
    trainer.module.zero_grad()
    return True


def snapshot(trainer: Trainer) -> dict[str, Any]:
    """What a rollback restores, as a tree that shares no memory with the run."""
    from minitorch.io import snapshot as copy

    return copy(
        {
            "global_step": trainer.global_step,
            "state_dict": dict(live_state(trainer.module)),
            **update_states(trainer),
            "callbacks": {cb.state_key: cb.rollback_state() for cb in _rolling_back(trainer)},
        }
    )


def fits(trainer: Trainer, tree: dict[str, Any]) -> bool:
    """Whether a snapshot has the names, groups and schedules that the run has now."""
    schedules, saved = trainer.lr_scheduler_configs, tree["lr_schedulers"]
    kinds = [type(config.scheduler).__name__ for config in schedules]
    if kinds != [s["scheduler"].get("kind", k) for s, k in zip(saved, kinds, strict=False)]:
        return False
    states = zip(trainer.optimizers, tree["optimizer_states"], strict=True)
    same = all(len(o.param_groups) == len(state["param_groups"]) for o, state in states)
    return same and set(live_state(trainer.module)) == set(tree["state_dict"])


def restore(trainer: Trainer, tree: dict[str, Any]) -> None:
    """Goes back to a snapshot, which stays as it is.

    A schedule that moves by epochs does not go back, and rates that such a one has set stay.
    """
    from minitorch.io import snapshot as copy

    tree = copy(tree)
    trainer.position.global_step = tree["global_step"]
    trainer.module.load_state_dict(tree["state_dict"])
    by_step = [c for c in trainer.lr_scheduler_configs if c.interval == "step"]
    for optimizer, state in zip(trainer.optimizers, tree["optimizer_states"], strict=True):
        rates = [_options(group) for group in optimizer.param_groups]
        optimizer.load_state_dict(state)
        if not any(_moves(config.scheduler, optimizer) for config in by_step):
            for group, options in zip(optimizer.param_groups, rates, strict=True):
                group.update(options)
    for config, state in zip(trainer.lr_scheduler_configs, tree["lr_schedulers"], strict=True):
        if config in by_step:
            config.scheduler.load_state_dict(state["scheduler"])
            config.seen = state["seen"]
    for callback in _rolling_back(trainer):
        state = tree["callbacks"].get(callback.state_key)
        if state:
            callback.load_rollback_state(state)


def _moves(schedule: Any, optimizer: Any) -> bool:
    return getattr(schedule, "optimizer", optimizer) is optimizer


def _options(group: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key not in ("params", "names", "shapes")}


def _rolling_back(trainer: Trainer) -> list[Callback]:
    """Callbacks whose state belongs to the weights."""
    return [callback for callback in trainer.callbacks if callback.rolls_back]
