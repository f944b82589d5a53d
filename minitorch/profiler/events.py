"""Events of a profile: their list, their averages, the table, and the trace for Chrome."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..errors import ArgumentError


@dataclass(eq=False)
class FunctionEvent:
    """One call of an operation, visit of backward, or labelled part. Times are in µs.

    Attributes:
        name: The operation, "NAMEBackward", or the label.
        start_us, end_us: When it ran, on the clock of `time.perf_counter`.
        thread: Identity of its thread.
        kind: "operation", "backward" or "label".
        input_shapes: With record_shapes, the shape of each input.
        cpu_memory_usage: With profile_memory, bytes of the new arrays that it returned.
        flops: With with_flops, of products; 0 for everything else.
        line: With with_stack, the user's line.
        cpu_children, cpu_parent: What ran inside of it, and inside of what it ran.
    """

    name: str
    start_us: float
    end_us: float
    thread: int
    kind: str = "operation"
    input_shapes: list[list[int]] = field(default_factory=list)
    cpu_memory_usage: int = 0
    flops: int = 0
    line: str = ""
    cpu_children: list[FunctionEvent] = field(default_factory=list, repr=False)
    cpu_parent: FunctionEvent | None = field(default=None, repr=False)
    count = 1

    @property
    def key(self) -> str:
        """What averages are grouped by: the name."""
        return self.name

    @property
    def cpu_time_total(self) -> float:
        """Time with everything inside of it, in µs."""
        return self.end_us - self.start_us

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Time without what ran inside of it, in µs."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes without those that its children returned already."""
        inner = sum(child.cpu_memory_usage for child in self.cpu_children)
        return max(0, self.cpu_memory_usage - inner)


@dataclass
class FunctionEventAvg:
    """All events of one name (and shapes), added up. Times are in µs.

    Attributes:
        key: The name.
        count: How many.
        cpu_time_total, self_cpu_time_total: Time with and without what ran inside.
        cpu_memory_usage, self_cpu_memory_usage: Bytes.
        flops: FLOPs of all.
        input_shapes: The shapes, where they were grouped by.
    """

    key: str
    count: int = 0
    cpu_time_total: float = 0.0
    self_cpu_time_total: float = 0.0
    cpu_memory_usage: int = 0
    self_cpu_memory_usage: int = 0
    flops: int = 0
    input_shapes: str = ""

    @property
    def cpu_time(self) -> float:
        """Mean time of one, in µs."""
        return self.cpu_time_total / self.count if self.count else 0.0

    def add(self, event: FunctionEvent) -> None:
        """Adds one event."""
        nested = _inside_its_own_kind(event)
        self.count += 1
        self.cpu_time_total += 0.0 if nested else event.cpu_time_total
        self.self_cpu_time_total += event.self_cpu_time_total
        self.cpu_memory_usage += 0 if nested else event.cpu_memory_usage
        self.self_cpu_memory_usage += event.self_cpu_memory_usage
        self.flops += event.flops


def _inside_its_own_kind(event: FunctionEvent) -> bool:
    outer = event.cpu_parent
    while outer is not None:
        if outer.name == event.name:
            return True
        outer = outer.cpu_parent
    return False


_SORTS: dict[str, Callable[[FunctionEventAvg], float]] = {
    "cpu_time": lambda one: one.cpu_time,
    "cpu_time_total": lambda one: one.cpu_time_total,
    "self_cpu_time_total": lambda one: one.self_cpu_time_total,
    "cpu_memory_usage": lambda one: one.cpu_memory_usage,
    "self_cpu_memory_usage": lambda one: one.self_cpu_memory_usage,
    "count": lambda one: one.count,
    "flops": lambda one: one.flops,
}
# A GPU is waited for after every operation, so that one column holds both.
_SORTS |= {name.replace("cpu", "cuda"): key for name, key in _SORTS.items() if "cpu" in name}
_SORTS |= {name.replace("cpu", "device"): key for name, key in _SORTS.items() if "cpu" in name}


class EventList(list[Any]):
    """Events or averages in a list that can be grouped, shown and written."""

    @property
    def self_cpu_time_total(self) -> float:
        """Time of all, in µs, each moment once."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0
    ) -> EventList:
        """One average for each name.

        Args:
            group_by_input_shape: For each name and shapes of inputs.
            group_by_stack_n: Above 0: for each name and user's line.
        """
        found: dict[tuple[str, ...], FunctionEventAvg] = {}
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shape else ""
            place = event.line if group_by_stack_n else ""
            average = found.setdefault(
                (event.name, shapes, place),
                FunctionEventAvg(event.name, input_shapes=shapes or place),
            )
            average.add(event)
        return EventList(found.values())

    def total_average(self) -> FunctionEventAvg:
        """Everything as one; time inside of other events counts once."""
        total = FunctionEventAvg("Total")
        for event in self:
            total.count += event.count
            total.cpu_time_total += event.self_cpu_time_total
            total.self_cpu_time_total += event.self_cpu_time_total
            total.cpu_memory_usage += event.self_cpu_memory_usage
            total.self_cpu_memory_usage += event.self_cpu_memory_usage
            total.flops += event.flops
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
    ) -> str:
        """The averages as text.

        Args:
            sort_by: "cpu_time_total", "self_cpu_time_total", "cpu_time", "cpu_memory_usage",
                "self_cpu_memory_usage", "count" or "flops"; None keeps the order.
            row_limit: Rows at most; -1 for all.
            max_src_column_width: Accepted for PyTorch's signature.
            max_name_column_width, max_shapes_column_width: Characters at most.
            header: A line above.
            top_level_events_only: For events: only those that are inside of no other.

        Raises:
            ArgumentError: There is no such order.
        """
        if sort_by is not None and sort_by not in _SORTS:
            raise ArgumentError(
                f"table: sort_by must be one of {', '.join(_SORTS)}. Got {sort_by!r}."
            )
        events = self
        if events and isinstance(events[0], FunctionEvent):
            kept = [e for e in events if not (top_level_events_only and e.cpu_parent)]
            events = EventList(kept).key_averages()
        rows = sorted(events, key=_SORTS[sort_by], reverse=True) if sort_by else list(events)
        shown = rows if row_limit == -1 else rows[:row_limit]
        cells = _cells(shown, self.self_cpu_time_total, max_name_column_width)
        shapes = [row.input_shapes[:max_shapes_column_width] for row in shown]
        if any(shapes):
            cells = [[*row, one] for row, one in zip(cells, ["Input Shapes", *shapes], strict=True)]
        lines = _aligned(cells)
        rule = "-" * max(map(len, lines))
        total = f"Self CPU time total: {_time(self.self_cpu_time_total)}"
        head = [header] if header else []
        return "\n".join([*head, rule, lines[0], rule, *lines[1:], rule, total])

    def export_chrome_trace(self, path: str | os.PathLike[str], **metadata: Any) -> None:
        """Writes the events for chrome://tracing, Perfetto or TensorBoard.

        Args:
            path: The file; compressed if it ends in ".gz".
            metadata: More entries of the file.
        """
        text = json.dumps(chrome_trace(self) | metadata)
        opener: Any = gzip.open if os.fspath(path).endswith(".gz") else open
        with opener(path, "wt", encoding="utf-8") as file:
            file.write(text)

    def __str__(self) -> str:
        return self.table()


def chrome_trace(events: Iterable[FunctionEvent]) -> dict[str, Any]:
    """The events in Chrome's format of traces: complete events, times in µs."""
    process, numbers = os.getpid(), dict[int, int]()
    traced: list[dict[str, Any]] = []
    for event in events:
        thread = numbers.setdefault(event.thread, len(numbers))
        details: dict[str, Any] = {}
        if event.input_shapes:
            details["Input Dims"] = event.input_shapes
        for name in ("cpu_memory_usage", "flops", "line"):
            if getattr(event, name):
                details[name] = getattr(event, name)
        traced.append(
            {
                "ph": "X",
                "cat": {"operation": "cpu_op", "backward": "cpu_op"}.get(
                    event.kind, "user_annotation"
                ),
                "name": event.name,
                "pid": process,
                "tid": thread,
                "ts": round(event.start_us, 3),
                "dur": round(event.end_us - event.start_us, 3),
                "args": details,
            }
        )
    traced.sort(key=lambda one: (one["tid"], one["ts"], -one["dur"]))
    names = [
        {
            "ph": "M",
            "name": "thread_name",
            "pid": process,
            "tid": n,
            "args": {"name": f"thread {n}"},
        }
        for n in numbers.values()
    ]
    return {"schemaVersion": 1, "displayTimeUnit": "ms", "traceEvents": [*names, *traced]}


def _cells(rows: list[FunctionEventAvg], total: float, width: int) -> list[list[str]]:
    memory, flops = any(r.cpu_memory_usage for r in rows), any(r.flops for r in rows)
    head = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg"]
    head += ["CPU Mem", "Self CPU Mem"] if memory else []
    head += ["# of Calls"] + (["Total MFLOPs"] if flops else [])
    cells = [head]
    for row in rows:
        name = row.key if len(row.key) <= width else f"{row.key[: width - 3]}..."
        line = [name, _share(row.self_cpu_time_total, total), _time(row.self_cpu_time_total)]
        line += [_share(row.cpu_time_total, total), _time(row.cpu_time_total), _time(row.cpu_time)]
        if memory:
            line += [_memory(row.cpu_memory_usage), _memory(row.self_cpu_memory_usage)]
        line.append(str(row.count))
        if flops:
            line.append(f"{row.flops / 1e6:.3f}" if row.flops else "--")
        cells.append(line)
    return cells


def _aligned(cells: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if 0 < i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _share(part: float, total: float) -> str:
    return f"{100 * part / total:.2f}%" if total else "--"


def _time(us: float) -> str:
    if us >= 1e6:
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _memory(count: int) -> str:
    value = float(count)
    for unit in ("B", "KB", "MB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.2f} {unit}"
        value /= 1024
    return f"{value:.2f} GB"
