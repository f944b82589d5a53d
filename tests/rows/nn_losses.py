"""Rows of losses that load late, similarities and shrinkage."""

from __future__ import annotations

from typing import Any

from nn_table import PLAIN, SAME, _each, _quiet, _row


def _signs(m: Any, x: Any) -> Any:
    """1 and -1 in turn, in the shape of `x`."""
    return m.tensor([1.0 - 2 * (i % 3 == 1) for i in range(x.numel())], dtype=x.dtype).reshape(
        tuple(x.shape)
    )


def _labels(m: Any, x: Any) -> Any:
    """The first and the last class of each row, then -1."""
    row = [0, x.shape[-1] - 1] + [-1] * (x.shape[-1] - 2)
    return m.tensor(row if x.ndim == 1 else [row] * x.shape[0])


def _numbers(m: Any, x: Any) -> Any:
    return (
        m.tensor([i % x.shape[1] for i in range(x.shape[0])]) if x.ndim == 2 else m.tensor([1])[0]
    )


ROWS = [
    *[
        _row(
            f"{name} of a number",
            lambda F, m, x, name=name: getattr(m, name)(x, dim=-1),
            (((),),),
        )
        for name in ("sum", "mean", "amax", "norm")
    ],
    _row("F.hardshrink", lambda F, m, x: F.hardshrink(x, 0.3)),
    _row("F.softshrink", lambda F, m, x: F.softshrink(x, 0.3)),
    _row("F.rrelu", lambda F, m, x: F.rrelu(x)),
    *[
        _row(f"F.{name}", lambda F, m, x, name=name, o=options: getattr(F, name)(x * 1, *o), PLAIN)
        for name, options in {
            "relu_": (),
            "leaky_relu_": (0.2,),
            "elu_": (0.5,),
            "celu_": (0.5,),
            "selu_": (),
            "hardtanh_": (-0.5, 0.7),
            "threshold_": (0.1, 2.0),
            "rrelu_": (0.1, 0.3),
        }.items()
    ],
    *_each(
        "soft_margin_loss",
        lambda F, m, r, x: F.soft_margin_loss(x, _signs(m, x), reduction=r),
        (((3, 4),), ((5,),)),
    ),
    *_each(
        "hinge_embedding_loss",
        lambda F, m, r, x: F.hinge_embedding_loss(x, _signs(m, x), 0.7, reduction=r),
        (((3, 4),), ((5,),)),
    ),
    *_each(
        "margin_ranking_loss",
        lambda F, m, r, a, b: F.margin_ranking_loss(a, b, _signs(m, a), 0.3, reduction=r),
        SAME,
    ),
    *_each(
        "cosine_embedding_loss",
        lambda F, m, r, a, b: F.cosine_embedding_loss(
            a, b.flip(-1), _signs(m, a.detach().sum(-1)), -0.9, reduction=r
        ),
        (((4, 3), (4, 3)), ((3,), (3,))),
    ),
    *_each(
        "multi_margin_loss",
        lambda F, m, r, x: F.multi_margin_loss(x, _numbers(m, x), reduction=r),
        (((4, 3),), ((3,),)),
    ),
    _row(
        "F.multi_margin_loss squared",
        lambda F, m, x: F.multi_margin_loss(
            x, _numbers(m, x), 2, 0.8, m.tensor([0.5, 2.0, 1.0], dtype=x.dtype)
        ),
        (((4, 3),),),
    ),
    *_each(
        "multilabel_margin_loss",
        lambda F, m, r, x: F.multilabel_margin_loss(x, _labels(m, x), reduction=r),
        (((3, 5),), ((4,),)),
    ),
    *_each(
        "multilabel_soft_margin_loss",
        lambda F, m, r, x, t: F.multilabel_soft_margin_loss(x, t, reduction=r),
        (((3, 4), (3, 4)), ((5,), (5,)), ((2, 3, 2), (2, 3, 2))),
        low=0.1,
    ),
    _row(
        "F.multilabel_soft_margin_loss weight",
        lambda F, m, x: F.multilabel_soft_margin_loss(
            x, (x.detach() > 0).to(x.dtype), m.tensor([0.5, 2.0, 1.0], dtype=x.dtype)
        ),
        (((4, 3),),),
    ),
    *_each(
        "poisson_nll_loss",
        lambda F, m, r, x, t: F.poisson_nll_loss(x, t, full=True, reduction=r),
        SAME,
        low=1.2,
        high=3.0,
    ),
    _row(
        "F.poisson_nll_loss rates",
        lambda F, m, x, t: F.poisson_nll_loss(x, t, log_input=False),
        SAME[:2],
        low=0.3,
    ),
    *_each(
        "triplet_margin_loss",
        lambda F, m, r, a, b, c: F.triplet_margin_loss(a, b, c, reduction=r),
        (((4, 3), (4, 3), (4, 3)), ((3,), (3,), (3,))),
    ),
    _row(
        "F.triplet_margin_loss swap",
        lambda F, m, a, b, c: F.triplet_margin_loss(a, b, c, 2.0, 1.0, swap=True),
        (((4, 3), (4, 3), (4, 3)),),
    ),
    _row(
        "F.triplet_margin_with_distance_loss",
        lambda F, m, a, b, c: F.triplet_margin_with_distance_loss(
            a, b, c, distance_function=lambda x, y: 1 - F.cosine_similarity(x, y), margin=0.9
        ),
        (((4, 3), (4, 3), (4, 3)),),
    ),
    _row(
        "F.pairwise_distance",
        lambda F, m, a, b: F.pairwise_distance(a, b),
        (((3, 4), (3, 4)), ((2, 3, 4), (3, 4)), ((4,), (4,))),
    ),
    _row(
        "F.pairwise_distance p",
        lambda F, m, a, b: F.pairwise_distance(a, b, 3.0, 1e-3, True),
        (((3, 4), (3, 4)),),
    ),
    _row("F.pdist", lambda F, m, x: F.pdist(x), (((4, 3),), ((2, 1),))),
    _row("F.pdist 3", lambda F, m, x: F.pdist(x, 3.0), (((4, 3),),)),
    _row(
        "F.cosine_similarity broadcast",
        lambda F, m, a, b: F.cosine_similarity(a, b, -1),
        (((3, 1, 4), (2, 4)),),
    ),
    _row(
        "F.gaussian_nll_loss rows",
        lambda F, m, x, t, v: F.gaussian_nll_loss(x, t, v),
        (((3, 4), (3, 4), (3, 1)), ((3, 4), (3, 4), (3,))),
        low=0.3,
    ),
    *[
        _row(
            f"F.{name} old arguments",
            _quiet(
                lambda F, m, a, b, name=name: sum(
                    (getattr(F, name)(a, b, size_average=s, reduce=r).sum() * k)
                    for k, (s, r) in enumerate([(True, None), (False, None), (None, False)], 1)
                )
            ),
            (((3, 4), (3, 4)),),
            low=0.1,
            high=0.9,
        )
        for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "binary_cross_entropy", "kl_div")
    ],
]
