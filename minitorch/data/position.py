"""Where a loader stands: the state that a checkpoint keeps."""

from dataclasses import dataclass
from typing import Any

from ..errors import DataError
from .samplers import checked_count

_KEYS = ("epoch", "batch", "seed", "num_shards", "batch_size", "length")


@dataclass
class Position:
    """A run through one epoch, as its consumer sees it.

    Attributes:
        epoch: the epoch that the run reads.
        batch: batches handed out so far.
        seed: root of the epoch's random numbers.
        num_shards: parts that a stream is split into; None for datasets with an index.
        live: True between the first batch and the end of the run.
        finished: True after the last batch.
    """

    epoch: int
    batch: int
    seed: int
    num_shards: int | None
    live: bool = False
    finished: bool = False

    def next_start(self) -> tuple[int, int]:
        """Epoch and batch from which a resumed loader goes on."""
        return (self.epoch + 1, 0) if self.finished else (self.epoch, self.batch)


def checked_state(
    state: Any, *, batch_size: int | None, length: int | None, batches: int | None
) -> dict[str, Any]:
    """A saved state, if it is one and fits the loader.

    Args:
        state: what came.
        batch_size: that of the loader.
        length: samples of an epoch, where known.
        batches: batches of an epoch, where known.

    Raises:
        DataError: keys are missing, a number is negative, or a position inside of an epoch was
            saved with another batch size or number of samples, or lies behind the last batch.
    """
    if not isinstance(state, dict) or set(state) != set(_KEYS):
        keys = sorted(map(str, state)) if isinstance(state, dict) else type(state).__name__
        raise DataError(
            f"DataLoader.load_state_dict: the state must have the keys {', '.join(_KEYS)}, as "
            f"state_dict() returns it. Got {keys}."
        )
    state = dict(state)
    for name in ("epoch", "batch", "seed"):
        what = f"DataLoader.load_state_dict: {name}"
        state[name] = checked_count(what, state[name], minimum=0)
    here = {"batch_size": batch_size, "length": length}
    for name, value in here.items():
        if state["batch"] and state[name] != value:
            raise DataError(
                f"DataLoader.load_state_dict: the position, batch {state['batch']} of epoch "
                f"{state['epoch']}, was saved with {name}={state[name]}, but this loader has "
                f"{name}={value}, so the same batch number means other samples. Use the same "
                "loader, or resume from the start of an epoch."
            )
    if batches is not None and state["batch"] > batches:
        raise DataError(
            f"DataLoader.load_state_dict: the position is batch {state['batch']} of epoch "
            f"{state['epoch']}, but an epoch of this loader has {batches}. Use the same loader."
        )
    return state
