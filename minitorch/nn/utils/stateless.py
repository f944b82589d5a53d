"""PyTorch's older place for `functional_call`."""

from ...func.calls import functional_call

__all__ = ["functional_call"]
