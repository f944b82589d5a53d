"""Operations that load on first use: the file that holds each, as function and as method.

An in-place form stands in the file of its operation: `name_ = in_place("name_", name)`.
"""

from __future__ import annotations

# File in this folder: the names that `minitorch` exports from it.
FUNCTIONS: dict[str, str] = {
    "complex_numbers": "adjoint angle complex conj conj_physical imag is_complex is_conj isreal "
    "polar real resolve_conj sgn view_as_complex view_as_real",
}

# File in this folder: the names that are methods of Tensor.
METHODS: dict[str, str] = {
    "complex_numbers": "adjoint angle conj conj_physical is_conj isreal resolve_conj sgn",
}

METHOD_HOLDER = {name: file for file, names in METHODS.items() for name in names.split()}
