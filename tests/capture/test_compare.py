"""When a replay counts as the same as an eager run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from minitorch.capture.compare import alike

ONE = np.ones(3, np.float32)
NEAR = ONE + np.float32(1e-6)

CASES: dict[str, tuple[Any, Any, bool, bool]] = {  # up to rounding, exactly
    "rounding": (ONE, NEAR, True, False),
    "rounding in a tuple": ((ONE, ONE), (ONE, NEAR), True, False),
    "rounding in a nested list": ([(ONE,)], [(NEAR,)], True, False),
    "an array less": ((ONE,), (ONE, ONE), False, False),
    "none on both sides": ((ONE, None), (ONE, None), True, True),
    "none against an array": ((ONE, None), (ONE, ONE), False, False),
    "an array against none": ((ONE, ONE), (ONE, None), False, False),
    "none against a number of an array": (None, np.float32(1), False, False),
}


@pytest.mark.parametrize("case", CASES)
def test_which_results_are_alike(case: str) -> None:
    a, b, nearly, exactly = CASES[case]
    assert alike(a, b) is nearly
    assert alike(a, b, exactly=True) is exactly
