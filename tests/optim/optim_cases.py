"""Optimizers with the options that are compared, and parameters to run them on."""

from __future__ import annotations

from typing import Any

import numpy as np

import minitorch as mt
from minitorch import nn

# Name, options. Each option and each pair that meets in one rule is there once.
CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("Adam", {}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "maximize": True}),
    ("Adam", {"lr": 0.05, "betas": (0.3, 0.5), "eps": 1e-3}),
    ("Adam", {"lr": 0.05, "betas": (0.0, 0.9)}),
    ("Adam", {"lr": 0.05, "amsgrad": True}),
    ("AdamW", {}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.2, "amsgrad": True}),
    ("RMSprop", {}),
    ("RMSprop", {"alpha": 0.3, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"momentum": 0.9}),
    ("RMSprop", {"centered": True}),
    ("RMSprop", {"alpha": 0.3, "centered": True, "momentum": 0.5}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.2}),
    ("Adagrad", {"maximize": True, "eps": 1e-3}),
    ("Adadelta", {}),
    ("Adadelta", {"lr": 0.5, "rho": 0.5, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"lr": 0.05, "betas": (0.3, 0.5), "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "maximize": True, "momentum_decay": 0.1}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("RAdam", {}),
    ("RAdam", {"lr": 0.05, "betas": (0.3, 0.9), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("ASGD", {}),
    ("ASGD", {"lr": 0.1, "lambd": 0.01, "t0": 10.0, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.3, 1.5), "step_sizes": (1e-3, 0.5), "maximize": True}),
    ("Lion", {}),
    ("Lion", {"lr": 0.01, "betas": (0.8, 0.9), "weight_decay": 0.1, "maximize": True}),
]
# PyTorch has no Lion.
TORCH_CASES = [case for case in CASES if case[0] != "Lion"]
IDS = [f"{name}-{'-'.join(options) or 'defaults'}" for name, options in CASES]
TORCH_IDS = [f"{name}-{'-'.join(options) or 'defaults'}" for name, options in TORCH_CASES]
SHAPES: list[tuple[int, ...]] = [(5, 4), (), (4,), (96, 100), (1, 3, 2), (0, 3), (7,)]


def arrays(shapes: Any = None, dtype: Any = np.float32, seed: int = 0) -> list[np.ndarray]:
    """Normal values in these shapes."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in (SHAPES if shapes is None else shapes)]


def parameters(values: list[np.ndarray]) -> list[Any]:
    """Parameters with these values in memory of their own."""
    return [nn.Parameter(mt.tensor(v)) for v in values]


def backward(params: list[Any], gradients: list[Any]) -> None:
    """Gives parameters gradients by backward; None leaves one out."""
    terms = [
        (p * mt.tensor(g)).sum() for p, g in zip(params, gradients, strict=True) if g is not None
    ]
    loss = terms[0]
    for term in terms[1:]:
        loss = loss + term
    loss.backward()


def values(params: list[Any]) -> list[np.ndarray]:
    """Copies of the parameters' values."""
    return [p.detach().numpy().copy() for p in params]
