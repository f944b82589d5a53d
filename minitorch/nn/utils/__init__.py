"""Helpers for gradients and parameters, with PyTorch's names."""

from ...lazy import lazy
from .clip_grad import clip_grad_norm_, clip_grad_value_, clip_grads_with_norm_, get_total_norm

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

__getattr__, __dir__ = lazy(__name__, {}, ("rnn",))
