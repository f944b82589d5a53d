"""What backward needs to know of one recorded operation."""

from __future__ import annotations

import contextlib
import itertools
import linecache
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..errors import GraphError
from .handle import RemovableHandle
from .mode import state

if TYPE_CHECKING:
    from ..ops.primitive import Op
    from ..tensor import Tensor

next_sequence = itertools.count().__next__

# A version is a list shared by every tensor that sees the same memory:
# [number of in-place writes, name of the last one, number of recorded in-place writes].
Version = list[Any]


class _Writes:
    """When the memory of any tensor was last written in place, on the scale of `Node.sequence`."""

    last = -1

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def note(self) -> None:
        """Memory was written just now."""
        with self._lock:  # a thread that is held up must not set `last` back
            self.last = next_sequence()


writes = _Writes()


class Node:
    """One operation in the graph.

    Attributes:
        op: The operation; it holds the backward rule.
        edges: For each array input its Node, the leaf Tensor itself, or None without gradient.
            None as a whole after backward has consumed the node.
        saved: The arrays that the rule needs.
        versions: For each saved array `(version, count when saved)`, flattened.
        params: The keyword options of the call.
        shapes: The shapes of the inputs where they were broadcast, else None.
        sequence: Grows with every recorded operation; inputs have smaller numbers.
        meta: None, or a dict with hooks and, in anomaly mode, the user's line.
    """

    __slots__ = (
        "__weakref__",
        "edges",
        "meta",
        "op",
        "params",
        "saved",
        "sequence",
        "shapes",
        "versions",
    )

    op: Op
    edges: tuple[Node | Tensor | None, ...] | None
    saved: tuple[Any, ...]
    versions: tuple[Any, ...]
    params: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...] | None
    sequence: int
    meta: dict[str, Any] | None

    def name(self) -> str:
        """PyTorch's style of name: `MulBackward`."""
        return "".join(part.capitalize() for part in self.op.name.split("_")) + "Backward"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """The nodes of the inputs, as PyTorch lists them; leaves are `AccumulateGrad`."""
        return tuple(
            (edge if edge is None or type(edge) is Node else AccumulateGrad(edge), 0)
            for edge in self.edges or ()
        )

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for whatever the user wants to note of this node."""
        if self.meta is None:
            self.meta = {}
        notes: dict[str, Any] = self.meta.setdefault("notes", {})
        return notes

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle:
        """Calls `hook(grad_outputs)` before the gradients of the inputs are computed.

        What it returns takes the place of the gradients.
        """

        def on_gradient(g: Any) -> Any:
            changed = hook((g,))
            return changed[0] if isinstance(changed, tuple) else changed

        return RemovableHandle(self.hooks(), on_gradient)

    def register_hook(self, hook: Callable[[tuple[Any, ...], Any], Any]) -> RemovableHandle:
        """Calls `hook(grad_inputs, grad_outputs)` after the gradients of the inputs are known.

        What it returns takes the place of `grad_inputs`.
        """
        owner: Any = self
        if self.op.name == "output_of" and self.edges:
            owner = self.edges[0]
        if owner.meta is None:
            owner.meta = {}
        return RemovableHandle(owner.meta.setdefault("after", {}), hook)

    def __repr__(self) -> str:
        return f"<{self.name()}>"

    def hooks(self) -> dict[int, Any]:
        """The hooks that see the gradient of this node's output; made on first use."""
        if self.meta is None:
            self.meta = {}
        return self.meta.setdefault("hooks", {})

    def check_versions(self) -> None:
        """Raises if a saved array was changed in place since it was saved.

        Raises:
            GraphError: Names the operation that needs the value and the one that changed it.
        """
        check_versions(self, self.versions)

    def raise_consumed(self) -> None:
        """Raises the error of a second backward through this node."""
        raise GraphError(
            f"backward: the graph of {self.op.name} was consumed by an earlier backward, and its "
            f"saved values are gone.{where(self)} Compute the loss again before the second "
            "backward, sum the losses and call backward once, or detach values that are carried "
            "from one step to the next."
        )


class AccumulateGrad:
    """The end of the graph at a leaf, where its gradient is accumulated.

    Attributes:
        variable: The leaf.
    """

    next_functions: tuple[Any, ...] = ()

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def name(self) -> str:
        """`AccumulateGrad`."""
        return "AccumulateGrad"

    def register_hook(self, hook: Callable[[tuple[Any, ...], Any], Any]) -> RemovableHandle:
        """Calls `hook((), ())` after the gradient was added to the leaf."""

        def called(leaf: Any) -> None:
            hook((), (leaf.grad,))

        return self.variable.register_post_accumulate_grad_hook(called)

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle:
        """Calls `hook((grad,))` before the gradient is added to the leaf."""

        def called(g: Any) -> Any:
            changed = hook((g,))
            return changed[0] if isinstance(changed, tuple) else changed

        return self.variable.register_hook(called)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)

    def __repr__(self) -> str:
        return "<AccumulateGrad>"


def where(node: Node) -> str:
    """The forward line of `node` in words, if anomaly mode noted it."""
    line = node.meta and node.meta.get("line")
    return f" It was computed at {line}." if line else ""


def check_versions(node: Node, versions: Sequence[Any]) -> None:
    """Raises if a value that `node` saved was changed in place since.

    Args:
        node: The node, for the message.
        versions: A version and its number at the time of saving, in turn.

    Raises:
        GraphError: Names the operation that needs the value and the one that changed it.
    """
    for i in range(0, len(versions), 2):
        if versions[i][0] != versions[i + 1]:
            raise GraphError(
                f"backward: {node.op.name} needs a value that it saved in the forward pass, "
                f"but {versions[i][1]} changed it in place afterwards "
                f"({versions[i][0] - versions[i + 1]} write(s)).{where(node)} "
                f"Use the out-of-place form of {versions[i][1]}, or clone the tensor first."
            )


def observe(node: Node) -> None:
    """Does what the modes of this thread ask for with a node that was just recorded."""
    if (state.anomaly or state.noting) and (node.meta is None or "line" not in node.meta):
        note_line(node)
    if state.saved_hooks and node.saved:
        from .saved import pack_node

        pack_node(node)


def note_line(node: Node) -> None:
    """Notes in `node` the innermost line outside of minitorch, and what was said to be meant."""
    line = user_line()
    if line:
        node.meta = {**(node.meta or {}), "line": line, "meant": state.meant}


_ROOT = __file__.rpartition("autograd")[0]


def user_line(*, skip: tuple[str, ...] = ()) -> str:
    """The innermost line outside of minitorch that is being run, as `file:line in function: text`.

    Args:
        skip: More folders to look past.
    """
    frame, _ = _outside(skip)
    if frame is None:
        return ""
    code = frame.f_code
    text = linecache.getline(code.co_filename, frame.f_lineno).strip()
    return f"{code.co_filename}:{frame.f_lineno} in {code.co_name}: {text}"


def user_level(*, skip: tuple[str, ...] = ()) -> int:
    """The `stacklevel` with which the calling function warns at the line of `user_line`.

    Args:
        skip: More folders to look past.
    """
    frame, level = _outside(skip)
    return 1 if frame is None else level


def _outside(skip: tuple[str, ...]) -> tuple[FrameType | None, int]:
    """The innermost frame outside of minitorch, and its number from the caller's caller on."""
    frame: FrameType | None = sys._getframe(2)
    folders, level = (_ROOT, contextlib.__file__, *skip), 1
    while frame is not None and frame.f_code.co_filename.startswith(folders):
        frame, level = frame.f_back, level + 1
    return frame, level


def leading_to(roots: Iterable[Any], wanted: set[Any] | None) -> set[Any]:
    """The edges that lead from the roots to a wanted one (None: to anything), those included."""
    leading: set[Any] = set()
    seen: set[Any] = set()
    stack: list[tuple[Any, bool]] = [(root, False) for root in roots]
    while stack:
        edge, done = stack.pop()
        children = edge.edges or () if type(edge) is Node else ()
        if done:
            if (
                wanted is None
                or edge in wanted
                or any(c is not None and c in leading for c in children)
            ):
                leading.add(edge)
            continue
        if edge in seen:
            continue
        seen.add(edge)
        stack.append((edge, True))
        stack.extend((child, False) for child in children if child is not None)
    return leading
