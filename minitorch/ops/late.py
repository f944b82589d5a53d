"""Operations that load on first use: the file that holds each, as function and as method.

An in-place form stands in the file of its operation: `name_ = in_place("name_", name)`.
"""

from __future__ import annotations

# File in this folder: the names that `minitorch` exports from it.
FUNCTIONS: dict[str, str] = {}

# File in this folder: the names that are methods of Tensor.
METHODS: dict[str, str] = {}

METHOD_HOLDER = {name: file for file, names in METHODS.items() for name in names.split()}
