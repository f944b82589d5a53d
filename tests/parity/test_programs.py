"""Programs written for PyTorch give the same losses here when only their imports change."""

from __future__ import annotations

import re
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="parity needs torch, which is not installed")

import minitorch as mt  # noqa: E402

PROGRAMS = sorted((Path(__file__).parents[1] / "programs").glob("*.py"))
STEPS = 20
IMPORT = re.compile(r"^(import|from) torch\b(?P<rest>.*)$", re.MULTILINE)


def _ported(source: str) -> str:
    """`source` with torch changed to minitorch in its import lines."""

    def line(match: re.Match[str]) -> str:
        word, rest = match[1], match["rest"]
        if word == "import" and " as " not in rest:
            # `import torch.x` binds the name torch.
            alone = "import minitorch as torch"
            return alone if not rest else f"import minitorch{rest}; {alone}"
        return f"{word} minitorch{rest}"

    return IMPORT.sub(line, source)


def _load(path: Path, source: str) -> Any:
    module = types.ModuleType(path.stem)
    exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    return module


def _losses(path: Path, source: str, start: dict[str, Any] | None) -> Any:
    """The losses, and the weights that the program started from."""
    program = _load(path, source)
    library = torch if start is None else mt
    modules = program.setup()
    if start is None:
        start = {
            name: {key: value.numpy().copy() for key, value in module.state_dict().items()}
            for name, module in modules.items()
        }
    else:
        for name, module in modules.items():
            wanted = {key: library.from_numpy(value) for key, value in start[name].items()}
            module.load_state_dict(wanted)
    return program.run(modules, STEPS), start


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_losses_follow_torch(path: Path) -> None:
    source = path.read_text()
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, start = _losses(path, source, None)
    ported = _ported(source)
    assert "import minitorch" in ported
    got, _ = _losses(path, ported, start)
    assert len(expected) == STEPS
    assert np.ptp(expected) > 0
    np.testing.assert_allclose(got, expected, rtol=2e-3, atol=1e-4)
