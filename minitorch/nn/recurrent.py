"""Recurrent layers over sequences: RNN, LSTM and GRU."""

from __future__ import annotations

import math
import numbers
import warnings
from typing import Any

from ..autograd.mode import state as state_of_mode
from ..errors import ArgumentError, DtypeError, ShapeError, describe
from ..ops.creation import empty
from ..tensor import Parameter, Tensor
from . import init
from .functional.recurrent import run_layers
from .module import Module
from .utils.rnn import PackedSequence

_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def uniform_by_width(module: Module, width: int) -> None:
    """PyTorch's start values of recurrent weights: uniform in ±1/sqrt(width)."""
    bound = 1 / math.sqrt(width) if width > 0 else 0
    for p in module.parameters():
        init.uniform_(p, -bound, bound)


class RNNBase(Module):
    """What RNN, LSTM and GRU share.

    Parameters are named `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, with a
    projection `weight_hr_l0`, for each layer, and with `_reverse` for the other direction.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size: Features of an element.
        hidden_size: Features of the state.
        num_layers: Layers on top of each other.
        bias: Whether there are biases.
        batch_first: Whether input and output are [B, T, …] instead of [T, B, …].
        dropout: Probability of an element between layers to be dropped.
        bidirectional: Whether each layer also runs backwards.
        proj_size: LSTM only: features of the hidden state after a projection; 0 for none.
        device: Where the parameters live.
        dtype: Their dtype.

    Raises:
        ArgumentError: A size or the dropout is out of range.
    """

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.bias, self.batch_first = bias, batch_first
        self.dropout, self.bidirectional, self.proj_size = dropout, bidirectional, proj_size
        self._check_options()
        gates = _GATES[mode] * hidden_size
        width = proj_size or hidden_size
        for layer in range(num_layers):
            for suffix in self._directions(layer):
                features = input_size if not layer else width * (2 if bidirectional else 1)
                shapes: dict[str, tuple[int, ...]] = {
                    "weight_ih": (gates, features),
                    "weight_hh": (gates, width),
                }
                if bias:
                    shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
                if proj_size:
                    shapes["weight_hr"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    value = Parameter(empty(*shape, device=device, dtype=dtype))
                    setattr(self, f"{name}_{suffix}", value)
        self.reset_parameters()

    def _check_options(self) -> None:
        name = type(self).__name__
        for option in ("input_size", "hidden_size", "num_layers"):
            value = getattr(self, option)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name}: {option} must be an int. Got {value!r}.")
            if value < 1:
                raise ArgumentError(f"{name}: {option} must be at least 1. Got {value}.")
        p = self.dropout
        if not isinstance(p, numbers.Number) or isinstance(p, bool) or not 0 <= p <= 1:
            raise ArgumentError(f"{name}: dropout is a probability, from 0 to 1. Got {p!r}.")
        if self.proj_size and self.mode != "LSTM":
            raise ArgumentError(f"{name}: only LSTM has a proj_size. Got {self.proj_size}.")
        if not 0 <= self.proj_size < self.hidden_size:
            raise ArgumentError(
                f"{name}: proj_size must be from 0 to hidden_size - 1. Got {self.proj_size}."
            )
        if p and self.num_layers == 1:
            warnings.warn(
                f"{name}: dropout acts between layers, and there is one. Got dropout={p} and "
                "num_layers=1.",
                stacklevel=4,
            )

    def _directions(self, layer: int) -> list[str]:
        return [f"l{layer}", f"l{layer}_reverse"] if self.bidirectional else [f"l{layer}"]

    def _names(self) -> list[list[str]]:
        kinds = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else [])]
        kinds += ["weight_hr"] if self.proj_size else []
        return [
            [f"{kind}_{suffix}" for kind in kinds]
            for layer in range(self.num_layers)
            for suffix in self._directions(layer)
        ]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters of each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._names()]

    def flatten_parameters(self) -> None:
        """Has no effect: the weights need no common memory here."""

    def reset_parameters(self) -> None:
        """Draws new start values: uniform in ±1/sqrt(hidden_size)."""
        uniform_by_width(self, self.hidden_size)

    def extra_repr(self) -> str:
        text = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, value in usual.items():
            if getattr(self, name) != value:
                text += f", {name}={getattr(self, name)}"
        return text

    def _state(self, hx: Any, batch: int, like: Tensor, batched: bool, order: Any) -> Any:
        """(h, c) as [layers · directions, batch, width] in the order of the rows."""
        owner = type(self).__name__
        count = self.num_layers * (2 if self.bidirectional else 1)
        widths = [self.proj_size or self.hidden_size]
        widths += [self.hidden_size] if self.mode == "LSTM" else []
        if hx is None:
            found = [like.new_zeros((count, batch, width)) for width in widths]
            return found[0], found[1] if len(found) > 1 else None
        given = list(hx) if self.mode == "LSTM" else [hx]
        if len(given) != len(widths) or not all(isinstance(h, Tensor) for h in given):
            raise ArgumentError(
                f"{owner}: the first state must be {'(h, c)' if len(widths) > 1 else 'one tensor'}."
                f" Got {len(given)} values."
            )
        for h, width in zip(given, widths, strict=True):
            wanted = (count, batch, width) if batched else (count, width)
            if tuple(h.shape) != wanted:
                raise ShapeError(
                    f"{owner}: the first state must have the shape {wanted}. Got {describe(h)}."
                )
        given = given if batched else [h.unsqueeze(1) for h in given]
        if order is not None:
            given = [h.index_select(1, order) for h in given]
        return given[0], given[1] if len(given) > 1 else None

    def _run(
        self, rows: Tensor, sizes: tuple[int, ...], state: Any, batch_first: bool = False
    ) -> Any:
        first = getattr(self, self._names()[0][0])
        name = type(self).__name__
        if rows.shape[-1] != self.input_size:
            raise ShapeError(
                f"{name}: the last axis of the input must have input_size={self.input_size} "
                f"features. Got {rows.shape[-1]}."
            )
        if rows.dtype is not first.dtype and state_of_mode.autocast is None:
            raise DtypeError(
                f"{name}: the input must have the dtype of the weights, {first.dtype.name}. "
                f"Got {describe(rows)}. Convert it with .to(weight.dtype)."
            )
        params = [p for weights in self.all_weights for p in weights]
        return run_layers(
            name,
            self.mode,
            rows,
            sizes,
            state,
            params,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            batch_first,
        )

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Runs over the sequences.

        Args:
            input: f[T, B, I], with `batch_first` f[B, T, I], without a batch f[T, I], or a
                PackedSequence.
            hx: First state f[layers · directions, B, H], for LSTM a pair (h, c); 0 if None.

        Returns:
            The states of the last layer (packed if the input is), and the last states.

        Raises:
            ShapeError: Shapes do not belong together, or there is no element.
            DtypeError: The input has another dtype than the weights.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        name = type(self).__name__
        if not isinstance(input, Tensor) or input.ndim not in (2, 3):
            raise ShapeError(
                f"{name}: the input must have 3 axes, or 2 without a batch. Got {describe(input)}."
            )
        batched = input.ndim == 3
        batch_first = batched and self.batch_first
        steps, batch = input.shape[0], input.shape[1] if batched else 1
        if batch_first:
            steps, batch = batch, steps
        if not steps:
            raise ShapeError(f"{name}: a sequence needs an element. Got {describe(input)}.")
        state = self._state(hx, batch, input, batched, None)
        rows = input.reshape(steps * batch, input.shape[-1])
        y, h, c = self._run(rows, (batch,) * steps, state, batch_first)
        y = y.reshape(*input.shape[:-1], y.shape[1])
        if not batched:
            h, c = h.squeeze(1), None if c is None else c.squeeze(1)
        return y, (h if c is None else (h, c))

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[Any, Any]:
        sizes = tuple(packed.batch_sizes.tolist())
        state = self._state(hx, sizes[0], packed.data, True, packed.sorted_indices)
        y, h, c = self._run(packed.data, sizes, state)
        back = packed.unsorted_indices
        if back is not None:
            h, c = h.index_select(1, back), None if c is None else c.index_select(1, back)
        return PackedSequence(y, *packed[1:]), (h if c is None else (h, c))


class RNN(RNNBase):
    """`h' = tanh(W x + b + U h + c)`, or with relu.

    Args:
        args: `input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True,
            batch_first=False, dropout=0.0, bidirectional=False, device=None, dtype=None`.
        kwargs: The same by name.

    Example:
        >>> y, h = RNN(10, 20, 2)(minitorch.randn(5, 3, 10))
        >>> y.shape, h.shape
        (minitorch.Size([5, 3, 20]), minitorch.Size([2, 3, 20]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) > 3:
            nonlinearity = args[3]
            args = (*args[:3], *args[4:])
        else:
            nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(
                f"RNN: nonlinearity must be 'tanh' or 'relu'. Got {nonlinearity!r}."
            )
        super().__init__(f"RNN_{nonlinearity.upper()}", *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory.

    Args:
        args: `input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
            bidirectional=False, proj_size=0, device=None, dtype=None`.
        kwargs: The same by name.

    Example:
        >>> y, (h, c) = LSTM(10, 20, 2)(minitorch.randn(5, 3, 10))
        >>> y.shape, c.shape
        (minitorch.Size([5, 3, 20]), minitorch.Size([2, 3, 20]))

    Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)


class GRU(RNNBase):
    """Gated recurrent units; arguments as in `LSTM`, without a projection.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **kwargs)
