"""Derivatives of functions of tensors, under PyTorch's older names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import ArgumentError, GraphError, ShapeError, describe
from ..ops.creation import ones_like, zeros, zeros_like
from ..ops.joining import stack
from ..tensor import Tensor
from .engine import grad
from .mode import enable_grad, is_grad_enabled


def vjp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of `func` and the product of `v` with its Jacobian.

    Args:
        func: From tensors to a tensor or a tuple of them.
        inputs: A tensor or a tuple of them.
        v: For each output a tensor of its shape; may be left out for a one-element output.
        create_graph: The results can be differentiated again.
        strict: Raise where an output does not depend on an input, instead of giving 0.

    Returns:
        `(outputs, vjp)`, each with the structure that `func` and `inputs` have.
    """
    run = _Run("vjp", func, inputs, create_graph, strict)
    with enable_grad():
        found = run.pull(run.direction(v, run.outputs), create_graph)
    return run.shown_outputs(), run.like_inputs(found)


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of `func` and the product of its Jacobian with `v`, by two backward passes.

    Args:
        func: From tensors to a tensor or a tuple of them.
        inputs: A tensor or a tuple of them.
        v: For each input a tensor of its shape; may be left out for a one-element input.
        create_graph: The results can be differentiated again.
        strict: Raise where an output does not depend on an input, instead of giving 0.

    Returns:
        `(outputs, jvp)`, each with the structure that `func` returns.
    """
    run = _Run("jvp", func, inputs, create_graph, strict)
    with enable_grad():
        direction = run.direction(v, run.inputs)
        duals = [zeros_like(o, requires_grad=True) for o in run.outputs]
        pulled = run.pull(duals, True)
        found = run.differentiate(pulled, duals, direction, create_graph)
    return run.shown_outputs(), run.like_outputs(found)


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func`.

    Args:
        func: From tensors to a tensor or a tuple of them.
        inputs: A tensor or a tuple of them.
        create_graph: The result can be differentiated again.
        strict: Raise where an output does not depend on an input, instead of giving 0.
        vectorize: Accepted for PyTorch's signature; rows are computed one by one.
        strategy: `"reverse-mode"`, or `"forward-mode"` with `vectorize`; the values are the same.

    Returns:
        For one output and one input a tensor of the shape of the output followed by that of the
        input; tuples, outputs first, where there are several.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise ArgumentError(
            "jacobian: strategy must be 'reverse-mode' or 'forward-mode'. Got " + repr(strategy)
        )
    if strategy == "forward-mode" and (create_graph or strict or not vectorize):
        raise ArgumentError(
            "jacobian: strategy='forward-mode' needs vectorize=True, and neither create_graph nor "
            "strict. Use 'reverse-mode'; the values are the same."
        )
    if vectorize and strict:
        raise ArgumentError(
            "jacobian: strict=True needs vectorize=False, as in PyTorch. Drop one of them."
        )
    run = _Run("jacobian", func, inputs, create_graph, strict)
    with enable_grad():
        blocks = [run.rows(k, create_graph) for k in range(len(run.outputs))]
    return run.like_outputs([run.like_inputs(row) for row in blocks])


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The second derivatives of a function with a one-element result.

    Args:
        func: From tensors to a one-element tensor.
        inputs: A tensor or a tuple of them.
        create_graph: The result can be differentiated again.
        strict: Raise where the gradient does not depend on an input, instead of giving 0.
        vectorize: Accepted for PyTorch's signature.
        outer_jacobian_strategy: Accepted for PyTorch's signature; the values are the same.

    Returns:
        For one input a tensor of its shape twice; a tuple of tuples where there are several.
    """
    several = isinstance(inputs, tuple)

    def gradient(*values: Any) -> Any:
        run = _Run("hessian", func, values, True, strict)
        _check_scalar("hessian", run)
        found = run.pull([ones_like(run.outputs[0])], True)
        return tuple(found) if several else found[0]

    return jacobian(gradient, inputs, create_graph, strict, vectorize)


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of `func` and the product of `v` with its Hessian; arguments as for `jvp`."""
    run = _Run("vhp", func, inputs, create_graph, strict)
    _check_scalar("vhp", run)
    with enable_grad():
        direction = run.direction(v, run.inputs)
        gradient = run.pull([ones_like(run.outputs[0])], True)
        found = run.differentiate(gradient, run.inputs, direction, create_graph)
    return run.shown_outputs(), run.like_inputs(found)


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """The value of `func` and the product of its Hessian with `v`: here the same as `vhp`, since
    the Hessian is symmetric.
    """
    return vhp(func, inputs, v, create_graph, strict)


def _check_scalar(name: str, run: _Run) -> None:
    if run.several_outputs or run.outputs[0].numel() != 1:
        raise ShapeError(
            f"{name}: the function must return one tensor with one element. "
            f"Got {[describe(o) for o in run.outputs]}. Sum its result, or use jacobian."
        )


class _Run:
    """One call of the function on fresh inputs, and derivatives of its outputs."""

    def __init__(
        self,
        name: str,
        func: Callable[..., Any],
        inputs: Any,
        create_graph: bool,
        strict: bool,
    ) -> None:
        self.name, self.strict, self.create_graph = name, strict, create_graph
        self.several_inputs = isinstance(inputs, tuple)
        given = _checked(name, "inputs", inputs)
        with enable_grad():
            self.inputs = [
                t.view_as(t) if create_graph and t.requires_grad else t.detach().requires_grad_()
                for t in given
            ]
            result = func(*self.inputs)
        self.several_outputs = isinstance(result, tuple)
        self.outputs = _checked(name, "outputs", result)
        if strict:
            for i, o in enumerate(self.outputs):
                if not o.requires_grad:
                    self._raise_strict(f"output {i} does not depend on any input")

    def _raise_strict(self, what: str) -> None:
        raise GraphError(
            f"{self.name}: with strict=True everything must depend on every input, and {what}. "
            "Drop strict to get 0 there."
        )

    def direction(self, v: Any, like: Sequence[Tensor]) -> list[Tensor]:
        """The vector `v` as a list; 1 where it is left out for one element."""
        if v is None:
            if len(like) != 1 or like[0].numel() != 1:
                raise ShapeError(
                    f"{self.name}: v may be left out only for one tensor with one element. "
                    f"Got {[describe(t) for t in like]}."
                )
            return [ones_like(like[0], requires_grad=False)]
        given = _checked(self.name, "v", v)
        if [t.shape for t in given] != [t.shape for t in like]:
            raise ShapeError(
                f"{self.name}: v must have the shapes {[describe(t) for t in like]}. "
                f"Got {[describe(t) for t in given]}."
            )
        return given

    def pull(self, v: Sequence[Tensor], create_graph: bool) -> list[Any]:
        """The gradients of the outputs, weighted with `v`, with respect to the inputs."""
        return self.differentiate(self.outputs, self.inputs, v, create_graph)

    def differentiate(
        self,
        outputs: Sequence[Tensor],
        inputs: Sequence[Tensor],
        v: Sequence[Tensor],
        create_graph: bool,
    ) -> list[Any]:
        """As `grad`, with 0 where an output does not depend on an input, or an error if strict."""
        used = [(o, g) for o, g in zip(outputs, v, strict=True) if o.requires_grad]
        if self.strict and len(used) < len(outputs):
            self._raise_strict("a gradient is constant")
        if not used:
            return [zeros_like(t, requires_grad=False) for t in inputs]
        found = grad(
            [o for o, _ in used],
            inputs,
            [g for _, g in used],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
        if self.strict and any(g is None for g in found):
            self._raise_strict(f"input {[g is None for g in found].index(True)} is not used")
        return [
            zeros_like(t, requires_grad=False) if g is None else g
            for g, t in zip(found, inputs, strict=True)
        ]

    def rows(self, k: int, create_graph: bool) -> list[Any]:
        """The Jacobian of output `k` with respect to each input."""
        output, rows = self.outputs[k], []
        for i in range(output.numel()):
            one = zeros(output.numel(), dtype=output.dtype, device=output.device)
            one[i] = 1
            rows.append(
                self.differentiate([output], self.inputs, [one.reshape(output.shape)], create_graph)
            )
        return [
            stack([row[j] for row in rows]).reshape(output.shape + t.shape)
            if rows
            else zeros(output.shape + t.shape, dtype=output.dtype, device=t.device)
            for j, t in enumerate(self.inputs)
        ]

    def shown_outputs(self) -> Any:
        """The outputs with the structure that the function gave; in a graph only on request."""
        keep = self.create_graph and is_grad_enabled()
        return self.like_outputs([o if keep else o.detach() for o in self.outputs])

    def like_outputs(self, values: Sequence[Any]) -> Any:
        """A tuple where the function returned one, else the one value."""
        return tuple(values) if self.several_outputs else values[0]

    def like_inputs(self, values: Sequence[Any]) -> Any:
        """A tuple where the inputs were one, else the one value."""
        return tuple(values) if self.several_inputs else values[0]


def _checked(name: str, what: str, values: Any) -> list[Tensor]:
    listed = list(values) if isinstance(values, tuple) else [values]
    for value in listed:
        if not isinstance(value, Tensor):
            raise ArgumentError(
                f"{name}: {what} must be a tensor or a tuple of tensors. "
                f"Got {type(value).__name__}."
            )
    return listed
