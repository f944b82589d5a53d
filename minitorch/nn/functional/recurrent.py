"""Recurrent layers and cells as functions: layers, directions and dropout between layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError, DtypeError, ShapeError, describe
from ...ops import joining
from ...ops.distinct import options_of
from ...ops.linalg import autocast_operands
from ...ops.recurrent import recurrent_op
from ...tensor import Tensor
from .layer import dropout as dropout_

State = tuple[Tensor, Tensor | None]


def _one(
    name: str,
    mode: str,
    rows: Tensor,
    sizes: tuple[int, ...],
    hx: State,
    weights: Any,
    reverse: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """One direction of one layer: the states of all rows, and the last states."""
    h0, c0 = hx
    given = autocast_operands(rows, h0, c0, *weights)
    if len({x.dtype for x in given if x is not None}) > 1 or not given[0].is_floating_point():
        shown = ", ".join(describe(x) for x in given if x is not None)
        raise DtypeError(
            f"{name}: input, states and weights must have one floating dtype. Got {shown}."
        )
    if rows.shape[1] != weights[0].shape[1]:
        raise ShapeError(
            f"{name}: the last axis of the input must have {weights[0].shape[1]} features. "
            f"Got {rows.shape[1]}."
        )
    known = options_of(given[0])
    flat = recurrent_op(
        *given, mode=mode, sizes=sizes, reverse=reverse, batch_first=batch_first, **known
    )
    batch, width = h0.shape
    ends = [0, len(rows) * width, (len(rows) + batch) * width, flat.shape[0]]
    y, h, c = (flat[a:b] for a, b in zip(ends, ends[1:], strict=False))
    return (
        y.reshape(len(rows), width),
        h.reshape(batch, width),
        None if c0 is None else c.reshape(tuple(c0.shape)),
    )


def run_layers(
    name: str,
    mode: str,
    rows: Tensor,
    sizes: tuple[int, ...],
    hx: State,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool = False,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """All layers over packed rows.

    Args:
        name: For messages.
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        rows: f[Σ sizes, input_size].
        sizes: Number of rows of each step, never growing.
        hx: First states f[layers · directions, batch, width]; the second is None but for LSTM.
        params: weight_ih, weight_hh, the two biases if there are any, and weight_hr if there is a
            projection, for each direction of each layer.
        has_biases: Whether there are biases.
        num_layers: Number of layers.
        dropout: Probability of an element between layers to be dropped.
        train: Whether dropout is active.
        bidirectional: Whether each layer runs in both directions.
        batch_first: Whether the rows of a sequence, all of one length, lie one after the other.

    Returns:
        The states of all rows f[Σ sizes, directions · width], and the last states.
    """
    directions = 2 if bidirectional else 1
    each = len(params) // (num_layers * directions)
    last: list[Tensor] = []
    cells: list[Tensor] = []
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            state = hx[0][k], None if hx[1] is None else hx[1][k]
            weights = list(params[k * each : (k + 1) * each])
            if not has_biases:
                weights[2:2] = [None, None]  # type: ignore[list-item]
            weights += [None] * (5 - len(weights))  # type: ignore[list-item]
            y, h, c = _one(name, mode, rows, sizes, state, weights, direction == 1, batch_first)
            outs.append(y)
            last.append(h)
            if c is not None:
                cells.append(c)
        rows = outs[0] if directions == 1 else joining.cat(outs, 1)
        if dropout and train and layer < num_layers - 1:
            rows = dropout_(rows, dropout, True)
    return rows, joining.stack(last), joining.stack(cells) if cells else None


def _function(name: str, mode: str, args: tuple[Any, ...]) -> tuple[Tensor, ...]:
    if len(args) != 9:
        raise ArgumentError(f"{name}: expected 9 arguments, as in PyTorch. Got {len(args)}.")
    pair = mode == "LSTM"
    if not isinstance(args[3], bool):
        data, batch_sizes, hx, params, *rest = args
        state = tuple(hx) if pair else (hx, None)
        sizes = tuple(batch_sizes.tolist())
        y, h, c = run_layers(name, mode, data, sizes, state, params, *rest)
        return (y, h) if c is None else (y, h, c)
    x, hx, params, *rest = args  # the last one is batch_first
    state, batch_first = tuple(hx) if pair else (hx, None), args[-1]
    steps, batch = x.shape[1::-1] if batch_first else x.shape[:2]
    rows = x.reshape(steps * batch, x.shape[2])
    sizes = (batch,) * steps
    y, h, c = run_layers(name, mode, rows, sizes, state, params, *rest)
    y = y.reshape(*x.shape[:2], y.shape[1])
    return (y, h) if c is None else (y, h, c)


def lstm(*args: Any) -> tuple[Tensor, ...]:
    """LSTM layers.

    Args:
        args: `(input, hx, params, has_biases, num_layers, dropout, train, bidirectional,
            batch_first)`, or `(data, batch_sizes, hx, params, has_biases, num_layers, dropout,
            train, bidirectional)` for a packed sequence. hx is (h, c).

    Returns:
        The output, the last hidden and the last cell states.

    Source: Hochreiter and Schmidhuber, Long Short-Term Memory, 1997.
    """
    return _function("lstm", "LSTM", args)


def gru(*args: Any) -> tuple[Tensor, ...]:
    """GRU layers; arguments as in `lstm`, hx being one tensor. Gives output and last states.

    Source: Cho et al., Learning Phrase Representations using RNN Encoder-Decoder, 2014.
    """
    return _function("gru", "GRU", args)


def rnn_tanh(*args: Any) -> tuple[Tensor, ...]:
    """`h' = tanh(W x + b + U h + c)`; arguments as in `gru`."""
    return _function("rnn_tanh", "RNN_TANH", args)


def rnn_relu(*args: Any) -> tuple[Tensor, ...]:
    """`h' = relu(W x + b + U h + c)`; arguments as in `gru`."""
    return _function("rnn_relu", "RNN_RELU", args)


def _cell(name: str, mode: str, input: Tensor, hx: State, weights: Sequence[Any]) -> Any:
    weights = [*weights, *[None] * (5 - len(weights))]
    for state in hx:
        if state is not None and (state.ndim != 2 or state.shape[0] != input.shape[0]):
            raise ShapeError(
                f"{name}: the state must be [batch, width] with the batch of the input. "
                f"Got {describe(state)} for {describe(input)}."
            )
    if hx[0].shape[1] != weights[1].shape[1]:
        raise ShapeError(
            f"{name}: the state must have {weights[1].shape[1]} features. Got {describe(hx[0])}."
        )
    _, h, c = _one(name, mode, input, (input.shape[0],), hx, weights, False, False)
    return h if c is None else (h, c)


def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """One step of LSTM.

    Args:
        input: f[B, I].
        hx: (h, c), each f[B, H].
        w_ih: f[4·H, I], for the input, forget, cell and output gates.
        w_hh: f[4·H, H].
        b_ih, b_hh: f[4·H].

    Returns:
        (h, c) after the step.
    """
    return _cell("lstm_cell", "LSTM", input, (hx[0], hx[1]), (w_ih, w_hh, b_ih, b_hh))


def gru_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of GRU: weights f[3·H, …] for the reset, update and new gates."""
    return _cell("gru_cell", "GRU", input, (hx, None), (w_ih, w_hh, b_ih, b_hh))


def rnn_tanh_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of `rnn_tanh`."""
    return _cell("rnn_tanh_cell", "RNN_TANH", input, (hx, None), (w_ih, w_hh, b_ih, b_hh))


def rnn_relu_cell(
    input: Tensor,
    hx: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> Tensor:
    """One step of `rnn_relu`."""
    return _cell("rnn_relu_cell", "RNN_RELU", input, (hx, None), (w_ih, w_hh, b_ih, b_hh))
