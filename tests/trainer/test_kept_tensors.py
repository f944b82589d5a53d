"""Tensors that a task keeps: what its constructor set is resumed, an activation is not saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from test_exact_resume import SaveAt
from toy_tasks import Regression, loader, quiet

import minitorch as mt
from minitorch import nn
from minitorch.utils.checkpoint import checkpoint


class Keeping(Regression):
    """Counts in a plain tensor, keeps its last activation, and checkpoints a dropped layer."""

    def __init__(self) -> None:
        super().__init__(dropout=0.3)
        self.hidden = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))
        self.total = mt.zeros(1)

    def forward(self, x: Any) -> Any:
        h = checkpoint(lambda t: self.dropout(self.hidden(t).tanh()), x)
        self.last = h.detach()
        self.total = self.total + self.last.abs().sum()
        return self.linear(h)


def test_resume_with_kept_tensors(tmp_path: Path) -> None:
    path, finals = tmp_path / "x.ckpt", []
    for k in (0, 3):
        mt.manual_seed(4)
        task = Keeping()
        quiet(max_epochs=2, callbacks=SaveAt("on_train_batch_end", k, path)).fit(task, loader(20))
        if k:
            task = Keeping()
            quiet(max_epochs=2).fit(task, loader(20), ckpt_path=path)
        finals.append({name: value.tolist() for name, value in task.state_dict().items()})
    assert finals[0] == finals[1]
    assert "total" in finals[0]
    assert "last" not in finals[0]
