"""Names of options that an optimizer or schedule does not have, and those that were meant."""

from __future__ import annotations

import difflib
import inspect
import re

_UNKNOWN = re.compile(r"(\w+)\.__init__\(\) got an unexpected keyword argument '(\w+)'")
_ELSEWHERE = {
    "learning_rate": "lr",
    "rate": "lr",
    "decay": "weight_decay",
    "l2": "weight_decay",
    "wd": "weight_decay",
    "epsilon": "eps",
    "beta1": "betas",
    "beta2": "betas",
    "beta_1": "betas",
    "beta_2": "betas",
    "parameters": "params",
    "patience_epochs": "patience",
    "num_steps": "total_steps",
    "max_steps": "total_steps",
}
"""What other libraries call them."""


def explain_option(error: TypeError) -> None:
    """Adds to Python's error which options there are, if it was raised by a wrong one."""
    found = _UNKNOWN.match(str(error))
    if found is None:
        return
    kind, given = found.groups()
    known = _options(kind)
    if not known:
        return
    near = [_ELSEWHERE[given]] if _ELSEWHERE.get(given) in known else []
    near = near or difflib.get_close_matches(given, known, n=1)
    meant = f"Did you mean {near[0]}? " if near else ""
    error.add_note(
        f"configure_optimizers: {kind} has no option {given}. {meant}It takes {', '.join(known)}."
    )


def _options(kind: str) -> list[str]:
    from minitorch import optim
    from minitorch.optim import lr_scheduler

    for home in (optim, lr_scheduler):
        if kind in dir(home):
            return list(inspect.signature(getattr(home, kind)).parameters)
    return []
