"""Functions of functions: gradients, Jacobians, batching, and modules as functions of their state.

The names and meanings are those of `torch.func`. Forward mode is computed by two backward passes,
and `vmap` runs the function once for each slice.
"""

from ..lazy import lazy

_HOLDERS = {
    "calls": "functional_call stack_module_state",
    "mapping": "vmap",
    "transforms": "grad grad_and_value hessian jacfwd jacrev jvp linearize vjp",
}
__getattr__, __dir__ = lazy(__name__, _HOLDERS)
