"""Rows of recurrent layers and cells; torch has the same functions."""

from __future__ import annotations

from typing import Any

from nn_table import _quiet, _row

GATES = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
SIZES = (3, 2, 2, 1)


def _weights(name: str, bias: bool = True, proj: int = 0) -> tuple[tuple[int, ...], ...]:
    """Shapes for input 3 and width 2."""
    rows, width = 2 * GATES[name], proj or 2
    shapes: tuple[tuple[int, ...], ...] = ((rows, 3), (rows, width))
    shapes += ((rows,), (rows,)) if bias else ()
    return (*shapes, (proj, 2)) if proj else shapes


def _joined(m: Any, results: Any) -> Any:
    """All results in one row."""
    return m.cat([r.reshape(-1) for r in results])


def _layer(name: str, *, bias: bool = True, proj: int = 0, packed: bool = False) -> Any:
    pair = name == "lstm"

    def call(F: Any, m: Any, x: Any, *rest: Any) -> Any:
        h, params = (rest[:2], rest[2:]) if pair else (rest[0], rest[1:])
        if packed:
            sizes = m.tensor(SIZES).cpu()
            found = getattr(m, name)(x, sizes, h, params, bias, 1, 0.0, False, False)
        else:
            found = getattr(m, name)(x, h, params, bias, 1, 0.0, False, False, False)
        return _joined(m, found)

    states = ((1, 3, proj or 2), (1, 3, 2))[: 2 if pair else 1]
    x = (sum(SIZES), 3) if packed else (4, 3, 3)
    text = f"{name} {'packed' * packed} {'plain' * (not bias)} {'projected' * (proj > 0)}"
    return _row(" ".join(text.split()), _quiet(call), ((x, *states, *_weights(name, bias, proj)),))


def _both(name: str) -> Any:
    """Two layers in both directions, the weights being slices of a few tensors."""
    pair = name == "lstm"

    def call(F: Any, m: Any, x: Any, h: Any, w_ih: Any, w_hh: Any, w_deep: Any, b: Any) -> Any:
        params = []
        for k in range(4):
            params += [w_ih if k < 2 else w_deep, w_hh * (k + 1), b, b * k]
        state = (h, h * 0.5) if pair else h
        return _joined(m, getattr(m, name)(x, state, params, True, 2, 0.0, False, True, True))

    rows = 2 * GATES[name]
    shapes = ((3, 4, 3), (4, 3, 2), (rows, 3), (rows, 2), (rows, 4), (rows,))
    return _row(f"{name} deep", call, (shapes,), low=-1.0, high=1.0)


def _cell(name: str, bias: bool = True) -> Any:
    pair = name == "lstm"

    def call(F: Any, m: Any, x: Any, *rest: Any) -> Any:
        h, params = (rest[:2], rest[2:]) if pair else (rest[0], rest[1:])
        found = getattr(m, f"{name}_cell")(x, h, *params)
        return _joined(m, found) if pair else found

    states = ((3, 2),) * (2 if pair else 1)
    text = f"{name}_cell" + ("" if bias else " plain")
    return _row(text, call, (((3, 3), *states, *_weights(name, bias)),))


ROWS = [
    *[_layer(name) for name in GATES],
    *[_layer(name, bias=False) for name in GATES],
    *[_layer(name, packed=True) for name in GATES],
    _layer("lstm", proj=1),
    _layer("lstm", proj=1, packed=True, bias=False),
    *[_both(name) for name in GATES],
    *[_cell(name) for name in GATES],
    _cell("lstm", False),
    _cell("gru", False),
]
