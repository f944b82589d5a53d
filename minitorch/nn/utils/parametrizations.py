"""Ready-made parametrisations."""

from __future__ import annotations

from typing import Any

from ...autograd import no_grad
from ...errors import ArgumentError
from ...ops.linalg import dot, mv
from ...tensor import Tensor
from ..functional.norm import normalize
from ..module import Module
from . import reparametrized
from .parametrize import register_parametrization


class _WeightNorm(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Any:
        return weight_v * (weight_g / reparametrized.norm_except_dim(weight_v, self.dim))

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Length and direction of the weight."""
        return reparametrized.norm_except_dim(weight, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits a weight into its length `original0` and its direction `original1`.

    Files with the names of the older `weight_norm`, `name_g` and `name_v`, can be loaded.

    Args:
        module: The module; it is changed and returned.
        name: Its weight.
        dim: The axis along which lengths are separate; None for one length.

    Source: Weight Normalization, Salimans and Kingma, 2016.
    """
    register_parametrization(module, name, _WeightNorm(-1 if dim is None else dim), unsafe=True)

    def rename(state: dict[str, Any], prefix: str, *rest: Any) -> None:
        for i, old in enumerate((f"{prefix}{name}_g", f"{prefix}{name}_v")):
            if old in state:
                state[f"{prefix}parametrizations.{name}.original{i}"] = state.pop(old)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        if n_power_iterations < 1 and weight.ndim > 1:
            raise ArgumentError(
                f"spectral_norm: n_power_iterations must be at least 1. Got {n_power_iterations}."
            )
        self.dim, self.eps = dim if weight.ndim > 1 else 0, eps
        if weight.ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = reparametrized.as_matrix(weight.detach(), self.dim)
            with no_grad():
                u, v = reparametrized.start_vectors(matrix, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            reparametrized.power_step(matrix, u, v, 15, eps, u_first=True)

    def forward(self, weight: Tensor) -> Any:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = reparametrized.as_matrix(weight, self.dim)
        if self.training:
            times = self.n_power_iterations
            reparametrized.power_step(matrix, self._u, self._v, times, self.eps, u_first=True)
        u, v = self._u.clone(), self._v.clone()
        return weight / dot(u, mv(matrix, v))

    def right_inverse(self, value: Tensor) -> Tensor:
        """The weight itself: its scale does not matter."""
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by an estimate of its largest singular value whenever it is read.

    Args:
        module: The module; it is changed and returned.
        name: Its weight.
        n_power_iterations: Steps that the estimate gets better by in training.
        eps: Added to norms, against division by 0.
        dim: The axis of the outputs; default 0, or 1 for transposed convolutions.

    Source: Spectral Normalization for Generative Adversarial Networks, Miyato et al., 2018.
    """
    weight = vars(module).get(name)
    if not isinstance(weight, Tensor):
        raise ArgumentError(
            f"spectral_norm: {type(module).__name__} must have a parameter '{name}'. "
            f"Got {type(weight).__name__}."
        )
    axis = reparametrized.default_dim(module, dim)
    return register_parametrization(
        module, name, _SpectralNorm(weight, n_power_iterations, axis, eps)
    )
