"""Mixed precision: autocast and loss scaling."""

from ..lazy import lazy
from .autocast import autocast, is_autocast_enabled

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_enabled"]

_HOLDERS = {"custom": "custom_bwd custom_fwd", "grad_scaler": "GradScaler"}
__getattr__, __dir__ = lazy(__name__, _HOLDERS)
