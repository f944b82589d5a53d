"""Every row of every table: the two old tables, and each file of `tests/rows/`."""

import importlib
from pathlib import Path

import nn_table
import op_table

_FILES = sorted(path.stem for path in (Path(__file__).parent / "rows").glob("*.py"))
FAMILIES = [row for file in _FILES for row in importlib.import_module(f"rows.{file}").ROWS]
ROWS = [*op_table.ROWS, *nn_table.ROWS, *FAMILIES]
