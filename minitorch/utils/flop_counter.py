"""FlopCounterMode: counts the floating-point operations of a program, for each module."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from typing import Any

from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ..ops.flops import FORMULAS, backward_flops, forward_flops, inside_product
from ..ops.observing import Call, Observer, observed

__all__ = ["FlopCounterMode"]


class FlopCounterMode(Observer):
    """Counts FLOPs inside of a `with` block: products, forward and backward.

    A multiplication and an addition are two. Backward's are counted as a whole ("Global"), the
    forward's for each module that runs.

        with FlopCounterMode(display=False) as counter:
            model(x).sum().backward()
        counter.get_total_flops()

    Args:
        mods: Accepted for PyTorch's signature: every module is seen.
        depth: Levels of modules in the table.
        display: Print the table at the end.
        custom_mapping: More formulas: from an operation's name to
            `formula(shapes of inputs, shape of output)`.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[str, Any] | None = None,
    ) -> None:
        self.depth, self.display = depth, display
        self.custom_mapping = dict(custom_mapping or {})
        self._names_counted = FORMULAS.keys() | self.custom_mapping
        self.flop_counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        self._names: dict[int, str] = {}
        self._inside: list[str] = []
        self._thread = 0
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._thread = threading.get_ident()
        for handle in (
            register_module_forward_pre_hook(self._entered),
            register_module_forward_hook(self._left, always_call=True),
        ):
            self._stack.callback(handle.remove)
        self._stack.enter_context(observed(self))
        return self

    def __exit__(self, *exc: Any) -> None:
        self._stack.close()
        self._inside.clear()
        if self.display:
            print(self.get_table())

    def get_total_flops(self) -> int:
        """FLOPs of everything."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[str, int]]:
        """For "Global" and each module that ran: FLOPs by operation."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """FLOPs by module and operation as text."""
        depth = self.depth if depth is None else depth
        total, rows = max(1, self.get_total_flops()), [("Module", "FLOP", "% Total")]
        for name, counts in self.flop_counts.items():
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            flops = sum(counts.values())
            rows.append((" " * level + name, f"{flops:,}", f"{100 * flops / total:.2f}%"))
            for op, one in counts.items():
                rows.append((" " * level + f" - {op}", f"{one:,}", f"{100 * one / total:.2f}%"))
        widths = [max(len(row[i]) for row in rows) for i in range(3)]
        return "\n".join(
            f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows
        )

    # What is heard.

    def begin(self, call: Call) -> None:
        call.notes["flops"] = backward_flops(call)

    def end(self, call: Call) -> None:
        if call.thread != self._thread:
            return
        flops = call.notes.get("flops", 0)  # it may have begun before this counter did
        if not flops and not inside_product(call, self._names_counted):
            custom = self.custom_mapping.get(call.name)
            flops = forward_flops(call) if custom is None else _custom(custom, call)
        if not flops:
            return
        places = ["Global"] if call.node is not None else ["Global", *self._inside]
        for place in dict.fromkeys(places):
            self.flop_counts[place][call.name] += flops

    def _entered(self, module: Any, args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        if id(module) not in self._names:
            root = type(module).__name__
            for path, part in module.named_modules():
                self._names.setdefault(id(part), f"{root}.{path}" if path else root)
        self._inside.append(self._names[id(module)])

    def _left(self, module: Any, args: Any, output: Any) -> None:
        if self._inside and threading.get_ident() == self._thread:
            self._inside.pop()


def _custom(formula: Any, call: Call) -> int:
    shapes = [getattr(x, "shape", None) for x in call.inputs]
    return int(formula(shapes, getattr(call.output, "shape", ())))
