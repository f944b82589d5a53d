"""The texts of the progress bar: numbers, rates and the pace of a run."""

from __future__ import annotations

import math

import pytest

from minitorch.callbacks.progress_text import Pace, number, rate_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.5, "0.5000"),
        (-0.123456, "-0.1235"),
        (12.0, "12.00"),
        (9999.4, "9999"),
        (12345.0, "1.234e+04"),
        (0.00012, "1.200e-04"),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("per_second", "text"),
    [(0, "? it/s"), (0.25, "4 s/it"), (1, "1 it/s"), (17.345, "17.3 it/s"), (4321.7, "4322 it/s")],
)
def test_rates(per_second: float, text: str) -> None:
    assert rate_text(per_second) == text


def test_pace_leaves_pauses_out_of_the_speed_and_in_the_estimate() -> None:
    pace = Pace()
    assert pace.seconds_left(5, 0.0) == math.inf
    pace.tick(1, 50.0)
    assert pace.seconds_left(5, 50.0) == math.inf
    pace.tick(3, 51.0)
    pace.pause(51.0)
    pace.resume(61.0)
    pace.tick(5, 62.0)
    assert pace.per_second == pytest.approx(2.0)
    assert pace.seconds_left(8, 62.0) == pytest.approx(8 * 12 / 4)
    assert pace.seconds_left(math.inf, 62.0) == math.inf
