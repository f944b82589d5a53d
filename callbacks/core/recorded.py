"""What the graph of the first loss tells: the checks of the flight that look at operations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from minitorch import Parameter, Tensor, backend
from minitorch.autograd.node import Node
from minitorch.checks import is_intended
from minitorch.errors import ShapeError, describe

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer

_PAIRWISE = frozenset(("sub", "add", "mul", "div"))
_FIRST_LOSS_LIMIT = 2.0


class Recorded:
    """The operations behind a loss, newest first, and the leaves they start from.

    Args:
        loss: The loss before backward.
    """

    def __init__(self, loss: Tensor) -> None:
        self.root = loss.grad_fn
        self.nodes: list[Node] = []
        self.leaves: list[Tensor] = []
        seen: set[int] = set()
        waiting: list[Any] = [self.root if self.root is not None else loss]
        while waiting:
            item = waiting.pop()
            if item is None or id(item) in seen:
                continue
            seen.add(id(item))
            if isinstance(item, Node):
                self.nodes.append(item)
                waiting.extend(item.edges or ())
            else:
                self.leaves.append(item)
        self.nodes.sort(key=lambda node: -node.sequence)


def line_of(node: Node) -> str:
    """Where an operation was called, for a message."""
    line = (node.meta or {}).get("line", "")
    return f" at {line}" if line else ""


def _meant(check: str, node: Node) -> bool:
    return is_intended(check, None, (node.meta or {}).get("meant", ()))


def check_leaves(trainer: Trainer, module: TaskModule, recorded: Recorded) -> None:
    """Every parameter that the loss reaches is in the tree, and it reaches one."""
    own = {id(p) for p in module.parameters()}
    reached = [leaf for leaf in recorded.leaves if id(leaf) in own]
    if not reached and own and recorded.nodes == []:
        trainer.checks.error(
            "lossless-step",
            "training_step: the loss must come from the module's parameters. Got a tensor made by "
            "hand that requires gradients, with no operation behind it. Return the loss itself, "
            "without tensor(...) around it.",
        )
    for leaf in recorded.leaves:
        if id(leaf) in own or trainer.checks.meant("unregistered-layers"):
            continue
        path = next(_places(module, leaf), "")
        if isinstance(leaf, Parameter) or path:
            kind = "a parameter" if isinstance(leaf, Parameter) else "a plain tensor"
            where = f"self.{path}" if path else "no attribute of the module"
            fix = "Make the object that holds it an nn.Module, or keep it in a list or dict."
            if not isinstance(leaf, Parameter):
                fix = "Make it an nn.Parameter, or detach it if it is a constant."
            trainer.checks.error(
                "unregistered-layers",
                "training_step: every parameter that the loss reaches must be in the module's "
                f"tree, or it is not trained, moved or saved. Got {kind} {describe(leaf)} that "
                f"requires gradients in {where}. {fix}",
            )


def _places(module: TaskModule, leaf: Tensor) -> Iterator[str]:
    """Paths of attributes that hold `leaf`, also inside of plain objects."""
    for name, part in module.named_modules():
        for key, value in vars(part).items():
            if key == "_task":
                continue
            path = f"{name}.{key}" if name else key
            yield from _inside(path, value, leaf, 3)


def _inside(path: str, value: Any, leaf: Tensor, depth: int) -> Iterator[str]:
    if value is leaf:
        yield path
    elif depth == 0 or isinstance(value, Tensor | str | int | float):
        return
    elif isinstance(value, list | tuple | set | frozenset):
        for number, item in enumerate(value):
            yield from _inside(f"{path}[{number}]", item, leaf, depth - 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _inside(f"{path}[{key!r}]", item, leaf, depth - 1)
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        for key, item in vars(value).items():
            yield from _inside(f"{path}.{key}", item, leaf, depth - 1)
    elif hasattr(value, "parameters") and hasattr(value, "named_parameters"):
        for key, item in value.named_parameters():
            yield from _inside(f"{path}.{key}", item, leaf, 0)


def check_shapes(trainer: Trainer, recorded: Recorded, sizes: set[int]) -> None:
    """No prediction of shape (N,1) meets targets of shape (N,)."""
    for node in recorded.nodes:
        if node.shapes is None or node.op.name not in _PAIRWISE or len(node.shapes) != 2:
            continue
        if not crosses(*node.shapes) or node.shapes[0][0] not in sizes:
            continue
        constant = [edge is None for edge in node.edges or ()]
        if sum(constant) != 1 or _was_unsqueezed(node) or _meant("loss-shape-broadcast", node):
            continue
        trainer.checks.error(
            "loss-shape-broadcast",
            broadcast_message(node.op.name, node.shapes, line_of(node)),
            ShapeError,
        )


def crosses(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether one is (N,1) and the other (N,), so that they broadcast to N×N."""
    return (len(a), len(b)) in ((2, 1), (1, 2)) and a[0] == b[0] > 1 and (a + b).count(1) == 1


def broadcast_message(name: str, shapes: Any, line: str) -> str:
    """The text of the error."""
    n = shapes[0][0]
    shown = " and ".join(f"[{','.join(map(str, shape))}]" for shape in shapes)
    return (
        f"{name}: predictions and targets of a loss or metric must have one shape. Got {shown}"
        f"{line}, which broadcasts to [{n},{n}]: every prediction meets every target. Did you mean "
        ".squeeze(-1) on the longer one?"
    )


def _was_unsqueezed(node: Node) -> bool:
    for edge in node.edges or ():
        if isinstance(edge, Node) and edge.op.name in ("reshape", "slice", "unsqueeze"):
            if len(edge.params.get("source", (0, 0))) == 1:
                return True
    return False


def check_widths(trainer: Trainer, recorded: Recorded) -> None:
    """No float width changes on the way to the loss, unless the line says so."""
    wanted = trainer.precision.widest.numpy
    for node in recorded.nodes:
        if node.op.name != "to" or node.params.get("source") != wanted:
            continue
        target = node.params.get("target")
        if target is None or target.kind != "f" or target.itemsize <= wanted.itemsize:
            continue
        line = line_of(node)
        if _meant("float64-creep", node) or any(w in line for w in ("double", "float64", ".to(")):
            continue
        trainer.checks.error(
            "float64-creep",
            f"training_step: one float width computes, {wanted}. Got {target}{line}: the other "
            "operand is wider, as NumPy's arrays are by default. Convert it: .float(), or "
            "np.float32.",
        )


def check_first_loss(trainer: Trainer, recorded: Recorded) -> None:
    """The first cross-entropy is not far above that of a uniform guess."""
    node = recorded.root
    if node is None or node.op.name != "cross_entropy" or trainer.checks.meant("init-last-layer"):
        return
    if node.params.get("reduction") != "mean" or not node.saved:
        return
    logits = node.saved[0]
    classes = logits.shape[1] if logits.ndim > 1 else logits.shape[0]
    expected = math.log(classes) if classes > 1 else 0.0
    value = float(trainer.first_loss)
    if expected and value > _FIRST_LOSS_LIMIT * expected and value > expected + 1:
        trainer.checks.warn(
            "init-last-layer",
            f"training_step: the first cross-entropy over {classes} classes is about log "
            f"{classes} = {expected:.3g}. Got {value:.3g}{line_of(node)}: the last layer is "
            "sure of itself and wrong, and the first updates only undo that. Scale its weights "
            "down, and set its bias to the logarithm of the class frequencies.",
        )


def check_units(trainer: Trainer, module: TaskModule, recorded: Recorded) -> None:
    """No ReLU gives 0 for every unit and every sample."""
    if trainer.checks.meant("dead-units-exploding"):
        return
    names = {id(p): name for name, p in module.named_parameters()}
    for node in recorded.nodes:
        if node.op.name != "relu" or not node.saved or node.saved[0] is None:
            continue
        out = node.saved[0]
        if out.size < 2 or bool(backend.to_host((out > 0).any())):
            continue
        layer = next((names[i] for i in _upstream(node) if i in names), "")
        after = f" after {layer.rpartition('.')[0] or layer}" if layer else ""
        trainer.checks.warn(
            "dead-units-exploding",
            f"training_step: some units of a ReLU should be active. Got 0 for all {out.size} "
            f"results of the ReLU{after}{line_of(node)} (epoch {trainer.position.epoch}, batch "
            f"{trainer.position.batch}): nothing below it learns. Lower the learning rate, look at "
            "the initialisation, or use LeakyReLU.",
        )


def _upstream(node: Node) -> Iterator[int]:
    """Ids of the leaves right below an operation, nearest first."""
    waiting: list[Any] = list(node.edges or ())
    for _ in range(50):
        if not waiting:
            return
        item = waiting.pop(0)
        if isinstance(item, Node):
            leaves = [edge for edge in item.edges or () if edge is not None]
            waiting = [e for e in leaves if not isinstance(e, Node)] + waiting
            waiting += [e for e in leaves if isinstance(e, Node)]
        elif item is not None:
            yield id(item)


def check_alignment(trainer: Trainer, recorded: Recorded, inputs: list[Any]) -> None:
    """Integer targets are not the inputs themselves, nor the inputs two places on."""
    for node in recorded.nodes:
        if node.op.name != "cross_entropy" or len(node.saved) < 2 or node.saved[1] is None:
            continue
        target = backend.to_host(node.saved[1])
        for array in _without_labels(target, inputs):
            shift = _shift(target, array)
            if shift is None or _meant("label-shift-off-by-one", node):
                continue
            what = "the inputs themselves" if shift == 0 else "the inputs two places on"
            fix = (
                "Shift once: predict x[:, 1:] from x[:, :-1]."
                if shift == 0
                else "Shift in one place only, in the data or before the loss."
            )
            trainer.checks.warn(
                "label-shift-off-by-one",
                f"cross_entropy: next-token labels are the inputs shifted by one. Got targets that "
                f"are {what}{line_of(node)}. {fix}",
            )


def _without_labels(target: Any, arrays: list[Any]) -> list[Any]:
    """The arrays of a batch less the one that the targets were taken from."""
    labels = [a for a in arrays if np.shares_memory(a, target)]
    labels += [a for a in arrays if _shift(target, a) == 0]
    if len(arrays) < 2 or not labels:
        return arrays
    return [a for a in arrays if a is not labels[0]]


def _shift(target: Any, inputs: Any) -> int | None:
    """0 or 2 if the targets are the inputs shifted so far, else None."""
    steps = inputs.shape[1]
    if target.ndim == 1 and target.size % len(inputs) == 0:
        target = target.reshape(len(inputs), -1)
    if target.ndim != 2 or target.shape[0] != inputs.shape[0] or steps < 4:
        return None
    width = target.shape[1]
    if not steps - 2 <= width <= steps or bool((inputs == inputs[:, :1]).all()):
        return None

    def fits(shift: int) -> bool:
        length = min(width, steps - shift)
        return length > 2 and bool((target[:, :length] == inputs[:, shift : shift + length]).all())

    return next((shift for shift in (0, 2) if fits(shift) and not fits(1)), None)
