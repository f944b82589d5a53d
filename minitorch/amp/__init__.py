"""Mixed precision: autocast and loss scaling."""

from .autocast import autocast, is_autocast_enabled

__all__ = ["GradScaler", "autocast", "is_autocast_enabled"]


def __getattr__(name: str) -> object:
    if name == "GradScaler":
        from .grad_scaler import GradScaler

        return GradScaler
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
