"""Every row of `tests/rows/` gives on the device what it gives on the CPU, at the same cost."""

from __future__ import annotations

from types import ModuleType

import pytest
from all_rows import FAMILIES
from device_checks import (
    DEVICES,
    Costs,
    check_gradients,
    check_results,
    check_second_gradients,
)
from op_table import Row

# Part of a row's name: why it may wait for the device, or take values from the host.
WAITS = {
    " packed": "the row brings its batch sizes to the CPU, where they belong",
    "ctc": "labels and lengths are looked at on the host",
    "frequencies": "the shape of the result depends on the values",
    "embedding_bag max": "the shape of the result depends on the values",
    "embedding_bag rows max": "the shape of the result depends on the values",
    "max_norm": "which rows are too long depends on the values",
}
UPLOADS = {
    "ctc": "labels and lengths are looked at on the host",
    "F.pdist": "the numbers of the pairs",
    "pool": "constants of an axis, once",
    "interpolate": "constants of an axis, once",
    "local_response": "constants of an axis, once",
}


def _named(parts: dict[str, str]) -> dict[str, str]:
    return {row.name: why for row in FAMILIES for part, why in parts.items() if part in row.name}


COSTS = Costs(_named(WAITS), _named(UPLOADS))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.name)
def test_results_equal_the_cpus(row: Row, device: str, pretend_gpu: ModuleType) -> None:
    check_results(row, device, pretend_gpu, COSTS)


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.name)
def test_gradients_equal_the_cpus(row: Row, pretend_gpu: ModuleType) -> None:
    check_gradients(row, pretend_gpu, COSTS)


@pytest.mark.parametrize("row", FAMILIES, ids=lambda row: row.name)
@pytest.mark.usefixtures("pretend_gpu")
def test_second_gradients_equal_the_cpus(row: Row) -> None:
    check_second_gradients(row)
