"""Rows of attention."""

from __future__ import annotations

from typing import Any

from nn_table import _row

QKV = (((2, 3, 4), (2, 5, 4), (2, 5, 2)), ((3, 2), (4, 2), (4, 2)))


def _mask(m: Any, q: Any, k: Any) -> Any:
    """bool[L, S]; the second row may attend nowhere."""
    rows, columns = q.shape[-2], k.shape[-2]
    return m.tensor([[i != 1 and (i + j) % 3 != 1 for j in range(columns)] for i in range(rows)])


def _multi_head(F: Any, m: Any, q: Any, k: Any, v: Any, *weights: Any, **options: Any) -> Any:
    w, b, out_w, out_b, bias_k, bias_v = weights
    y, found = F.multi_head_attention_forward(
        q, k, v, 4, 2, w, b, bias_k, bias_v, True, 0.0, out_w, out_b, **options
    )
    return y if found is None else m.cat([y.reshape(-1), found.reshape(-1)])


HEADS = ((12, 4), (12,), (4, 4), (4,), (1, 1, 4), (1, 1, 4))
MULTI = (((3, 2, 4), (5, 2, 4), (5, 2, 4), *HEADS), ((3, 4), (5, 4), (5, 4), *HEADS))
_SDPA = "F.scaled_dot_product_attention"

ROWS = [
    _row(_SDPA, lambda F, m, q, k, v: F.scaled_dot_product_attention(q, k, v), QKV),
    _row(
        f"{_SDPA} causal",
        lambda F, m, q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.7),
        QKV,
    ),
    _row(
        f"{_SDPA} bool mask",
        lambda F, m, q, k, v: F.scaled_dot_product_attention(q, k, v, _mask(m, q, k)),
        QKV,
    ),
    _row(
        f"{_SDPA} float mask",
        lambda F, m, q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask),
        (
            ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 3), (2, 1, 3, 5)),
            ((2, 3, 4), (2, 5, 4), (2, 5, 3), (3, 5)),
        ),
    ),
    _row(
        f"{_SDPA} heads",
        lambda F, m, q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        (((2, 4, 3, 2), (2, 2, 5, 2), (2, 1, 5, 3)),),
    ),
    _row(
        f"{_SDPA} broadcast",
        lambda F, m, q, k, v: F.scaled_dot_product_attention(q, k, v),
        (((2, 3, 3, 2), (3, 4, 2), (1, 3, 4, 3)),),
    ),
    _row("F.multi_head_attention_forward", _multi_head, MULTI),
    _row(
        "F.multi_head_attention_forward masks",
        lambda F, m, q, k, v, *w: _multi_head(
            F,
            m,
            q,
            k,
            v,
            *w,
            attn_mask=m.tensor([[(i + j) % 3 == 1 for j in range(5)] for i in range(3)]),
            key_padding_mask=m.tensor([[False] * 4 + [True]] * 2),
            average_attn_weights=False,
        ),
        (((3, 2, 4), (5, 2, 4), (5, 2, 4), *HEADS),),
    ),
    _row(
        "F.multi_head_attention_forward plain",
        lambda F, m, q, k, v, *w: _multi_head(F, m, q, k, v, *w, need_weights=False),
        MULTI,
    ),
]
