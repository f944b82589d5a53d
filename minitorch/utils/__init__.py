"""PyTorch's place for the data tools, checkpointing and TensorBoard's writer."""

from ..lazy import lazy

__getattr__, __dir__ = lazy(
    __name__, {}, ("checkpoint", "data", "flop_counter", "model_zoo", "tensorboard")
)
