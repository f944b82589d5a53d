"""ModelSummary: what a model consists of, as a table."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minitorch import Tensor, no_grad, random
from minitorch.callbacks.callback import Callback
from minitorch.callbacks.core.nested import map_leaves
from minitorch.callbacks.extras import needed
from minitorch.callbacks.monitor import refuse
from minitorch.errors import ArgumentError
from minitorch.nn.modes import evaluating

if TYPE_CHECKING:
    from minitorch.nn import Module
    from minitorch.trainer import TaskModule, Trainer


_FILE_COLUMNS = 160


@dataclass(frozen=True)
class SummaryRow:
    """One module of a table.

    Attributes:
        name: Its dotted name; "" is the module itself.
        kind: Its class.
        parameters: Elements of the parameters in it, below it too; shared ones count once.
        trainable: Those that require a gradient.
        in_size, out_size: Shapes in and out, "" without an example input.
        flops: Floating-point operations of its products in the example's forward pass.
    """

    name: str
    kind: str
    parameters: int
    trainable: int
    in_size: str = ""
    out_size: str = ""
    flops: int = 0


@dataclass(frozen=True)
class Summary:
    """A table of a model; `str()` shows it.

    Attributes:
        rows: One for each module down to the depth.
        parameters: Elements of all parameters, shared ones once.
        trainable: Those that require a gradient.
        parameter_bytes, buffer_bytes: Memory of parameters and buffers.
        flops: Floating-point operations of the example's forward pass; None without one.
    """

    rows: tuple[SummaryRow, ...]
    parameters: int
    trainable: int
    parameter_bytes: int
    buffer_bytes: int
    flops: int | None = None

    def cells(self) -> list[list[str]]:
        """The table's texts: a head and a row for each module."""
        sizes = any(row.in_size or row.out_size for row in self.rows)
        cells = [["name", "type", "parameters", "trainable"]]
        cells[0] += ["FLOPs", "in", "out"] if sizes else []
        for row in self.rows:
            counts = [f"{row.parameters:,}", f"{row.trainable:,}"]
            more = [_amount(row.flops), row.in_size, row.out_size] if sizes else []
            cells.append([row.name, row.kind, *counts, *more])
        return cells

    def __str__(self) -> str:
        cells = self.cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [_line(row, widths) for row in cells]
        rule = "-" * max(map(len, lines))
        body = [lines[0], rule, *lines[1:], rule] if self.rows else []
        return "\n".join([*body, *self.totals()])

    def totals(self) -> list[str]:
        """Lines about the whole model."""
        frozen = self.parameters - self.trainable
        memory = f"{_bytes(self.parameter_bytes)} of parameters"
        if self.buffer_bytes:
            memory += f", {_bytes(self.buffer_bytes)} of buffers"
        lines = [
            f"{self.parameters:,} parameters: {self.trainable:,} trainable, {frozen:,} frozen",
            memory,
        ]
        if self.flops is not None:
            lines.append(f"{_amount(self.flops)} FLOPs in a forward pass of the example")
        return lines


def summarize(module: Module, *, max_depth: int = 1, example_input: Any = None) -> Summary:
    """Counts parameters and memory of a module and, with an example, records shapes.

    Args:
        module: Any module; nothing in it changes.
        max_depth: Levels of modules in the table: 1 for the direct parts, 0 for totals only, -1
            for all.
        example_input: A tensor, a tuple of arguments, or a dict of keyword arguments for forward.
            Default: the module's `example_input_array`.

    Raises:
        ArgumentError: The forward pass fails on the example.
    """
    if isinstance(max_depth, bool) or not isinstance(max_depth, int) or max_depth < -1:
        refuse("summarize", "max_depth", max_depth, "an integer ≥ 0, or -1 for all")
    parts = _parts(module, max_depth)
    if example_input is None:
        example_input = getattr(module, "example_input_array", None)
    shapes: dict[str, tuple[str, str]] = {}
    flops: dict[str, int] = {}
    if example_input is not None:
        shapes, flops = _traced(module, parts, example_input)
    rows = [
        SummaryRow(
            name,
            type(part).__name__,
            *_count(part.parameters()),
            *shapes.get(name, ("", "")),
            flops.get(name, 0),
        )
        for name, part in parts
    ]
    own = _count(module.parameters(recurse=False))
    if own[0] and parts:
        rows.append(SummaryRow("(own)", "Parameter", *own))
    return Summary(
        tuple(rows),
        *_count(module.parameters()),
        _memory(module.parameters()),
        _memory(module.buffers()),
        flops.get(""),
    )


class ModelSummary(Callback):
    """Prints a table of the model when a fit starts.

    Args:
        max_depth: Levels of modules in the table: 1 for the direct parts, 0 for totals only, -1
            for all. Shapes and FLOPs are shown if the module has an `example_input_array`.
    """

    def __init__(self, max_depth: int = 1) -> None:
        self.max_depth = max_depth

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        trainer.print(self.text(summarize(module, max_depth=self.max_depth)))

    def text(self, summary: Summary) -> str:
        """How the summary is shown."""
        return str(summary)


class RichModelSummary(ModelSummary):
    """The same table with lines and colours; `pip install "minitorch-trainer[rich]"`.

    Args:
        max_depth: See `ModelSummary`.
    """

    def setup(self, trainer: Trainer, module: TaskModule, stage: str) -> None:
        with needed("RichModelSummary", "rich"):
            import rich  # noqa: F401

    def text(self, summary: Summary) -> str:
        """The table drawn by rich; without a terminal it has no colours."""
        from rich.console import Console
        from rich.table import Table

        head, *rows = summary.cells()
        table = Table(header_style="bold cyan")
        for index, name in enumerate(head):
            side: Any = "right" if index in _NUMBERS else "left"
            table.add_column(name, justify=side, overflow="fold")
        for row in rows:
            table.add_row(*(cell.replace("[", r"\[") for cell in row))
        target = io.StringIO()
        terminal = sys.stdout.isatty()
        width = None if terminal else _FILE_COLUMNS
        console = Console(file=target, force_terminal=terminal, width=width)
        if rows:
            console.print(table)
        for line in summary.totals():
            console.print(line, markup=False, highlight=False)
        return target.getvalue().rstrip()


def _parts(module: Module, max_depth: int) -> list[tuple[str, Module]]:
    return [
        (name, part)
        for name, part in module.named_modules()
        if name and (max_depth == -1 or name.count(".") < max_depth)
    ]


def _count(parameters: Any) -> tuple[int, int]:
    unique = {id(p): p for p in parameters}.values()
    return sum(p.numel() for p in unique), sum(p.numel() for p in unique if p.requires_grad)


def _memory(tensors: Any) -> int:
    return sum(t.numel() * t.dtype.itemsize for t in {id(t): t for t in tensors}.values())


def _bytes(count: int) -> str:
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.4g} {unit}"
        value /= 1000
    return f"{value:.4g} GB"


def _amount(count: int) -> str:
    value = float(count)
    for unit in ("", " k", " M", " G"):
        if value < 1000:
            return f"{value:.4g}{unit}"
        value /= 1000
    return f"{value:.4g} T"


_NUMBERS = (2, 3, 4)
"""Columns that are aligned to the right: parameters, trainable, FLOPs."""


def _line(cells: list[str], widths: list[int]) -> str:
    columns = []
    for index, (cell, width) in enumerate(zip(cells, widths, strict=True)):
        columns.append(
            cell.rjust(width)
            if index in (2, 3) or (index == 4 and len(cells) > 4)
            else cell.ljust(width)
        )
    return "   ".join(columns).rstrip()


def _traced(
    module: Module, parts: list[tuple[str, Module]], example: Any
) -> tuple[dict[str, tuple[str, str]], dict[str, int]]:
    """Shapes and FLOPs by module in one forward pass; "" is the whole module."""
    from minitorch.utils.flop_counter import FlopCounterMode

    found: dict[str, tuple[str, str]] = {}

    def recorder(name: str) -> Any:
        def record(part: Module, args: tuple[Any, ...], output: Any) -> None:
            inputs = args[0] if len(args) == 1 else args
            found.setdefault(name, (_shape(inputs), _shape(output)))

        return record

    counter = FlopCounterMode(display=False)
    with contextlib.ExitStack() as stack:
        stack.enter_context(no_grad())
        stack.enter_context(random.fork_rng())
        stack.enter_context(evaluating(module))
        for name, part in parts:
            stack.enter_context(part.register_forward_hook(recorder(name)))
        args, kwargs = _arguments(module, example)
        stack.enter_context(counter)
        try:
            module(*args, **kwargs)
        except Exception as error:
            raise ArgumentError(
                "summarize: the forward pass must run on the example input (argument "
                "example_input, or example_input_array of the module). "
                f"Got {type(error).__name__}: {error} Give one that forward accepts, or none."
            ) from error
    root = f"{type(module).__name__}."
    counts = counter.get_flop_counts()
    flops = {name.removeprefix(root): sum(one.values()) for name, one in counts.items()}
    return found, {**flops, "": counter.get_total_flops()}


def _arguments(module: Module, example: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    first = next(iter(module.parameters()), None)

    def place(leaf: Any) -> Any:
        from minitorch import as_tensor

        tensor = leaf if isinstance(leaf, Tensor) else as_tensor(leaf)
        if first is None:
            return tensor
        floating = tensor.is_floating_point()
        return tensor.to(device=first.device, dtype=first.dtype if floating else tensor.dtype)

    placed = map_leaves(example, place)
    if isinstance(placed, Mapping):
        return (), dict(placed)
    return (placed if isinstance(placed, tuple) else (placed,)), {}


def _shape(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"[{', '.join(map(str, value.shape))}]"
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_shape, value))})"
    return type(value).__name__
