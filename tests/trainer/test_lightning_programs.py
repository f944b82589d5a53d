"""Programs written for Lightning run with only their imports changed, without a false alarm."""

from __future__ import annotations

import re
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from minitorch.trainer import isolate_rng

FOLDER = Path(__file__).parents[1] / "programs" / "lightning"
PROGRAMS = sorted(FOLDER.glob("*.py"))
IMPORTS = [
    (re.compile(r"^import pytorch_lightning as pl$", re.M), "import minitorch.trainer as pl"),
    (re.compile(r"^from pytorch_lightning\.", re.M), "from minitorch."),
    (
        re.compile(r"^import torch\.nn\.functional as F$", re.M),
        "import minitorch.nn.functional as F",
    ),
    (re.compile(r"^import torch$", re.M), "import minitorch as torch"),
    (re.compile(r"^from torch\b", re.M), "from minitorch"),
]
EXPECTED: dict[str, dict[str, Callable[[Any], bool]]] = {
    "autoencoder": {"codes": lambda n: n == 4, "width": lambda n: n == 3, "loss": lambda v: v < 1},
    "dqn": {"steps": lambda n: n == 30, "loss": np.isfinite},
    "fine_tuning": {
        "first": lambda v: v > 0.8,
        "second": lambda v: v > 0.8,
        "groups": lambda n: n == 2,
        "ends": lambda n: n == 1,
    },
    "gan": {"samples": lambda shape: tuple(shape) == (8, 2), "d_loss": lambda v: 0 < v < 2},
    "image_classifier": {"accuracy": lambda v: v > 0.8, "steps": lambda n: n == 28},
    "language_model": {"perplexity": lambda v: 1 < v < 60, "steps": lambda n: n == 10},
}


def _main(path: Path, source: str, root: Path) -> Any:
    module = types.ModuleType(path.stem)
    exec(compile(source, str(path), "exec", dont_inherit=True), vars(module))
    with isolate_rng():
        return module.main(str(root))


def _check(name: str, result: dict[str, Any]) -> None:
    for key, holds in EXPECTED[name].items():
        assert holds(result[key]), (key, result)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_it_runs_here(path: Path, tmp_path: Path) -> None:
    source = path.read_text()
    for pattern, ours in IMPORTS:
        source = pattern.sub(ours, source)
    assert "lightning" not in "".join(re.findall(r"^(?:import|from) .*$", source, re.M))
    _check(path.stem, _main(path, source, tmp_path))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_it_is_a_lightning_program(path: Path, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
        pytest.importorskip("pytorch_lightning")
        with torch.random.fork_rng():
            _check(path.stem, _main(path, path.read_text(), tmp_path))
