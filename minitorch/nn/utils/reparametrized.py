"""Weight and spectral normalisation by a hook before forward, PyTorch's older way."""

from __future__ import annotations

from typing import Any

from ...autograd import no_grad
from ...errors import ArgumentError
from ...ops.linalg import dot, mv
from ...ops.sampling import randn
from ...tensor import Parameter, Tensor
from ..functional.norm import normalize
from ..hooks import FORWARD_PRE
from ..module import Module


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """The 2-norm over all axes but `dim`, which stay as axes of length 1; over all for -1."""
    if dim == -1:
        return v.norm()
    others = tuple(i for i in range(v.ndim) if i != dim % v.ndim)
    norm: Tensor = (v * v).sum(others, keepdim=True).sqrt() if others else v.abs()
    return norm


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """The weight with axis `dim` first and everything else in one axis behind it."""
    if dim:
        weight = weight.permute(dim, *[i for i in range(weight.ndim) if i != dim])
    return weight.reshape(weight.shape[0], -1)


def power_step(
    matrix: Tensor, u: Any, v: Any, times: int, eps: float, u_first: bool = False
) -> None:
    """Moves `u` and `v` towards the first singular vectors of `matrix`, in place."""
    with no_grad():
        forward = (matrix.detach(), v, u)
        back = (matrix.detach().T, u, v)
        for _ in range(times):
            for m, source, target in (forward, back) if u_first else (back, forward):
                target.copy_(normalize(mv(m, source), dim=0, eps=eps))


def start_vectors(matrix: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Random unit vectors for the power iteration."""
    height, width = matrix.shape
    options: dict[str, Any] = {"dtype": matrix.dtype, "device": matrix.device}
    u = normalize(randn(height, **options), dim=0, eps=eps)
    v = normalize(randn(width, **options), dim=0, eps=eps)
    return u, v


def default_dim(module: Module, dim: int | None) -> int:
    """The axis of the outputs: 1 for transposed convolutions, else 0."""
    return dim if dim is not None else int(type(module).__name__.startswith("ConvTranspose"))


class WeightNorm:
    """The hook of `weight_norm`."""

    def __init__(self, name: str, dim: int) -> None:
        self.name, self.dim = name, dim

    def compute_weight(self, module: Any) -> Tensor:
        """`g * v / |v|`."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        weight: Tensor = v * (g / norm_except_dim(v, self.dim))
        return weight

    def __call__(self, module: Module, inputs: Any) -> None:
        vars(module)[self.name] = self.compute_weight(module)


class SpectralNorm:
    """The hook of `spectral_norm`."""

    def __init__(self, name: str, n_power_iterations: int, dim: int, eps: float) -> None:
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module: Any, do_power_iteration: bool) -> Tensor:
        """The weight over its largest singular value."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            power_step(matrix, u, v, self.n_power_iterations, self.eps)
            u, v = u.clone(), v.clone()  # the next step writes into the buffers
        normed: Tensor = weight / dot(u, mv(matrix, v))
        return normed

    def __call__(self, module: Module, inputs: Any) -> None:
        vars(module)[self.name] = self.compute_weight(module, module.training)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Splits a weight into its length `name_g` and its direction `name_v`.

    Args:
        module: The module; it is changed and returned.
        name: Its weight.
        dim: The axis along which lengths are separate; None for one length.

    Raises:
        ArgumentError: There is no such parameter, or it is split already.

    Source: Weight Normalization, Salimans and Kingma, 2016.
    """
    weight = _take(module, name, WeightNorm)
    hook = WeightNorm(name, -1 if dim is None else dim)
    module.register_parameter(name + "_g", Parameter(norm_except_dim(weight, hook.dim).detach()))
    module.register_parameter(name + "_v", Parameter(weight.detach()))
    hook(module, ())
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight that `weight_norm` split a parameter again."""
    hook = _remove_hook(module, name, WeightNorm)
    with no_grad():
        weight = hook.compute_weight(module)
    for part in (name, name + "_g", name + "_v"):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight.detach()))
    return module


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a weight by an estimate of its largest singular value in every forward.

    The weight is `name_orig`; the estimate lives in the buffers `name_u` and `name_v` and gets
    better by `n_power_iterations` steps in each forward of training.

    Args:
        module: The module; it is changed and returned.
        name: Its weight.
        n_power_iterations: Steps in each forward.
        eps: Added to norms, against division by 0.
        dim: The axis of the outputs; default 0, or 1 for transposed convolutions.

    Raises:
        ArgumentError: There is no such parameter, or it is normalised already.

    Source: Spectral Normalization for Generative Adversarial Networks, Miyato et al., 2018.
    """
    if n_power_iterations < 1:
        raise ArgumentError(
            f"spectral_norm: n_power_iterations must be at least 1. Got {n_power_iterations}."
        )
    weight = _take(module, name, SpectralNorm)
    hook = SpectralNorm(name, n_power_iterations, default_dim(module, dim), eps)
    with no_grad():
        u, v = start_vectors(as_matrix(weight, hook.dim), eps)
    module.register_parameter(name + "_orig", weight)
    vars(module)[name] = weight.detach()
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    return module


def remove_spectral_norm(module: Module, name: str = "weight") -> Module:
    """Makes the weight that `spectral_norm` divides a parameter again, divided."""
    hook = _remove_hook(module, name, SpectralNorm)
    with no_grad():
        weight = hook.compute_weight(module, False)
    for part in (name, name + "_u", name + "_v", name + "_orig"):
        delattr(module, part)
    module.register_parameter(name, Parameter(weight.detach()))
    return module


def _take(module: Module, name: str, kind: type) -> Parameter:
    """The parameter of that name, taken out of the module."""
    weight = vars(module).get(name)
    if not isinstance(weight, Parameter):
        again = _hook_number(module, name, kind) is not None
        raise ArgumentError(
            f"{kind.__name__}: {type(module).__name__} must have a parameter '{name}'. "
            + ("It is reparametrised already." if again else f"Got {type(weight).__name__}.")
        )
    delattr(module, name)
    return weight


def _hook_number(module: Module, name: str, kind: type) -> int | None:
    hooks = module._hooks.kinds[FORWARD_PRE] if module._hooks is not None else {}
    for number, hook in hooks.items():
        if isinstance(hook.function, kind) and getattr(hook.function, "name", None) == name:
            return number
    return None


def _remove_hook(module: Module, name: str, kind: type) -> Any:
    number = _hook_number(module, name, kind)
    if number is None or module._hooks is None:
        raise ArgumentError(
            f"remove: '{name}' of {type(module).__name__} has no {kind.__name__}. "
            "Name the weight that was reparametrised."
        )
    return module._hooks.kinds[FORWARD_PRE].pop(number).function
