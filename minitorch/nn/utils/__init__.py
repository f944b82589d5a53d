"""Helpers for gradients and parameters, with PyTorch's names."""

from ...lazy import lazy
from .clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

_HOLDERS = {
    "reparametrized": "remove_spectral_norm remove_weight_norm spectral_norm weight_norm",
    "vectors": "fuse_conv_bn_eval fuse_linear_bn_eval parameters_to_vector skip_init "
    "vector_to_parameters",
}
_PACKAGES = ("parametrizations", "parametrize", "prune", "rnn", "stateless")
__getattr__, __dir__ = lazy(__name__, _HOLDERS, _PACKAGES)
