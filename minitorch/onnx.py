"""Export to ONNX, which is not built yet."""

from __future__ import annotations

from typing import Any, NoReturn


def is_in_onnx_export() -> bool:
    """False: nothing is ever exported."""
    return False


def export(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises: there is no export yet."""
    raise NotImplementedError(
        "onnx.export: there is no export to ONNX yet. Save the weights with "
        "minitorch.save(module.state_dict(), path), which other frameworks read as safetensors."
    )
