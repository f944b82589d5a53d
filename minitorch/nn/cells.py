"""Recurrent cells: one step of RNN, LSTM and GRU."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, ShapeError, describe
from ..ops.creation import empty
from ..tensor import Parameter, Tensor
from .functional import recurrent
from .linear import positive
from .module import Module
from .recurrent import uniform_by_width


class RNNCellBase(Module):
    """What the cells share: weights for `num_chunks` gates.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        bias: Whether there are biases.
        num_chunks: Number of gates.
        device: Where the parameters live.
        dtype: Their dtype.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        positive(type(self).__name__, input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        rows = num_chunks * hidden_size
        self.weight_ih = Parameter(empty(rows, input_size, device=device, dtype=dtype))
        self.weight_hh = Parameter(empty(rows, hidden_size, device=device, dtype=dtype))
        self.bias_ih = Parameter(empty(rows, device=device, dtype=dtype)) if bias else None
        self.bias_hh = Parameter(empty(rows, device=device, dtype=dtype)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new start values: uniform in ±1/sqrt(hidden_size)."""
        uniform_by_width(self, self.hidden_size)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias else ", bias=False")

    def _step(self, name: str, input: Tensor, state: list[Tensor] | None) -> Any:
        """The cell on a batch; unbatched inputs and states get one."""
        owner = type(self).__name__
        if input.ndim not in (1, 2):
            raise ShapeError(f"{owner}: the input must be [B, I] or [I]. Got {describe(input)}.")
        if input.shape[-1] != self.input_size:
            raise ShapeError(
                f"{owner}: the last axis of the input must have input_size={self.input_size} "
                f"features. Got {describe(input)}."
            )
        for h in state or ():
            if h.ndim not in (1, 2):
                raise ShapeError(f"{owner}: a state must be [B, H] or [H]. Got {describe(h)}.")
        batched = input.ndim == 2
        x = input if batched else input.unsqueeze(0)
        if state is None:
            zeros = x.new_zeros((x.shape[0], self.hidden_size))
            state = [zeros, zeros]
        elif not batched:
            state = [h.unsqueeze(0) for h in state]
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        pair = name == "lstm_cell"
        out = getattr(recurrent, name)(x, tuple(state) if pair else state[0], *weights)
        if batched:
            return out
        return tuple(h.squeeze(0) for h in out) if pair else out.squeeze(0)


class RNNCell(RNNCellBase):
    """`h' = tanh(W x + b + U h + c)`, or with relu.

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        bias: Whether there are biases.
        nonlinearity: "tanh" or "relu".
        device: Where the parameters live.
        dtype: Their dtype.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ArgumentError(
                f"RNNCell: nonlinearity must be 'tanh' or 'relu'. Got {nonlinearity!r}."
            )
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def extra_repr(self) -> str:
        text = super().extra_repr()
        return text if self.nonlinearity == "tanh" else f"{text}, nonlinearity={self.nonlinearity}"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        name = f"rnn_{self.nonlinearity}_cell"
        return self._step(name, input, None if hx is None else [hx])


class LSTMCell(RNNCellBase):
    """One step of LSTM; state and result are (h, c).

    Args:
        input_size: Features of the input.
        hidden_size: Features of the state.
        bias: Whether there are biases.
        device: Where the parameters live.
        dtype: Their dtype.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> tuple[Tensor, Tensor]:
        return self._step("lstm_cell", input, None if hx is None else list(hx))


class GRUCell(RNNCellBase):
    """One step of GRU; arguments as in `LSTMCell`, the state being one tensor."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("gru_cell", input, None if hx is None else [hx])
