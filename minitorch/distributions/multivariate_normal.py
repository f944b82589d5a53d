"""The multivariate normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import ShapeError, describe
from ..ops.elementwise import log
from ..ops.shape import broadcast_shapes
from . import constraints
from .distribution import Distribution
from .utils import LOG_2PI, lazy_property, normal_like, one_of


class MultivariateNormal(Distribution):
    """Normal vectors, with density proportional to `exp(-(x-loc)ᵀ Σ⁻¹ (x-loc)/2)`.

    Args:
        loc: f[..., k], mean.
        covariance_matrix: f[..., k, k], Σ, positive definite.
        precision_matrix: f[..., k, k], Σ⁻¹, instead of Σ.
        scale_tril: f[..., k, k], lower triangular L with `L·Lᵀ = Σ`, instead of Σ.
        validate_args: As in `Distribution`.

    Raises:
        ArgumentError: Not exactly one of the matrices is given.
        ShapeError: The shapes do not fit.
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _tensors: ClassVar[dict[str, int]] = {
        "loc": 1,
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
        "_tril": 2,
    }

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        given = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        one_of("MultivariateNormal", **given)
        name, matrix = next((n, m) for n, m in given.items() if m is not None)
        fits = loc.ndim >= 1 and matrix.ndim >= 2
        if not fits or tuple(matrix.shape[-2:]) != (loc.shape[-1], loc.shape[-1]):
            raise ShapeError(
                f"MultivariateNormal: loc must be [..., k] and {name} [..., k, k]. "
                f"Got {describe(loc)} and {describe(matrix)}."
            )
        batch = broadcast_shapes(tuple(matrix.shape[:-2]), tuple(loc.shape[:-1]))
        k = loc.shape[-1]
        self.loc = loc.expand((*batch, k))
        vars(self)[name] = matrix.expand((*batch, k, k))
        super().__init__(batch, (k,), validate_args)
        self._tril = self._factor(name, vars(self)[name])

    def _factor(self, name: str, matrix: Any) -> Any:
        from ..linalg import cholesky, inv

        if name == "scale_tril":
            return matrix
        return cholesky(matrix if name == "covariance_matrix" else inv(matrix))

    @lazy_property
    def scale_tril(self) -> Any:
        """L with `L·Lᵀ = Σ`."""
        return self._tril

    @lazy_property
    def covariance_matrix(self) -> Any:
        """Σ."""
        return self._tril @ self._tril.transpose(-1, -2)

    @lazy_property
    def precision_matrix(self) -> Any:
        """Σ⁻¹."""
        from ..linalg import inv

        return inv(self.covariance_matrix)

    @property
    def mean(self) -> Any:
        return self.loc

    @property
    def mode(self) -> Any:
        return self.loc

    @property
    def variance(self) -> Any:
        return (self._tril**2).sum(-1)

    def rsample(self, sample_shape: Any = ()) -> Any:
        noise = normal_like(self._extended_shape(sample_shape), self.loc)
        return self.loc + (self._tril @ noise.unsqueeze(-1)).squeeze(-1)

    def _half_log_det(self) -> Any:
        return log(self._tril.diagonal(0, -2, -1)).sum(-1)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        from ..linalg import solve_triangular

        apart = (value - self.loc).unsqueeze(-1)
        z = solve_triangular(self._tril, apart, upper=False).squeeze(-1)
        k = self._event_shape[0]
        return -0.5 * (k * LOG_2PI + (z * z).sum(-1)) - self._half_log_det()

    def entropy(self) -> Any:
        return 0.5 * self._event_shape[0] * (1.0 + LOG_2PI) + self._half_log_det()
