"""The page of a report: facts in, one self-contained HTML text out."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from minitorch.callbacks.progress_text import number
from minitorch.callbacks.report_assets import CSS, SCRIPT
from minitorch.callbacks.report_series import Curve, Points, charts, reduced

_PHASE_COLOR = {"train": 0, "val": 1, "test": 2, "": 0}
_COLORS = 6


@dataclass
class Facts:
    """What a page shows.

    Attributes:
        title: Its heading.
        status: "running", "completed", "stopped", "interrupted" or "failed".
        reason: One sentence on how the run ended.
        tiles: Short texts under a name each.
        share: Part of the run that is done; None if unknown.
        history: For each metric the points (global_step, value).
        extra: More charts: title to curves.
        messages: Warnings of the run.
        error: The exception that ended it, as text.
        results: Metrics of a test after the fit.
        tables: Title to (name, value, set by the user).
        texts: Title to a text in columns.
        refresh_seconds: The page loads itself again after so many; None for never.
        written: When, as text.
    """

    title: str
    status: str
    reason: str = ""
    tiles: Sequence[tuple[str, str]] = ()
    share: float | None = None
    history: Mapping[str, Points] = field(default_factory=dict)
    extra: Mapping[str, list[Curve]] = field(default_factory=dict)
    messages: Sequence[str] = ()
    error: str = ""
    results: Mapping[str, float] = field(default_factory=dict)
    tables: Mapping[str, Sequence[tuple[str, str, bool]]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    refresh_seconds: float | None = None
    written: str = ""


def page(facts: Facts) -> str:
    """The whole page."""
    f, text = facts, html.escape
    refresh = ""
    if f.refresh_seconds is not None:
        refresh = f'<meta http-equiv="refresh" content="{max(1, round(f.refresh_seconds))}">\n'
    body = [
        f'<header><h1>{text(f.title)}</h1><span class="badge {f.status}">{f.status}</span>'
        f'<p class="reason">{text(f.reason)}</p></header>',
        _tiles(f),
        _messages(f),
        '<h2>Curves</h2><div class="charts" id="charts"></div>',
        _results(f.results),
        '<div class="columns">' + "".join(_table(*item) for item in f.tables.items()) + "</div>",
        *(
            f'<h2>{text(t)}</h2><div class="card"><pre>{text(c)}</pre></div>'
            for t, c in f.texts.items()
        ),
        f"<footer>Written {text(f.written)} by minitorch.</footer>",
    ]
    data = json.dumps(_charts(f), allow_nan=False).replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<link rel="icon" href="data:,">\n{refresh}<title>{text(f.title)}: {f.status}</title>\n'
        f"<style>{CSS}</style>\n</head>\n<body>\n<main>\n{''.join(body)}\n</main>\n"
        f'<script type="application/json" id="data">{data}</script>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def _tiles(f: Facts) -> str:
    cells = "".join(
        f'<div class="card tile"><span>{html.escape(name)}</span><b>{html.escape(value)}</b></div>'
        for name, value in f.tiles
    )
    bar = ""
    if f.share is not None and f.status == "running":
        bar = f'<div class="bar"><i style="width:{100 * min(1.0, f.share):.1f}%"></i></div>'
    return f'<div class="tiles">{cells}</div>{bar}'


def _messages(f: Facts) -> str:
    if not f.messages and not f.error:
        return ""
    parts = ["<h2>Messages</h2>"]
    if f.error:
        parts.append(f'<div class="card message error"><pre>{html.escape(f.error)}</pre></div>')
    parts += [f'<div class="card message">{html.escape(text)}</div>' for text in f.messages]
    return "".join(parts)


def _results(results: Mapping[str, float]) -> str:
    if not results:
        return ""
    rows = [(name, number(value), False) for name, value in results.items()]
    return f'<div class="columns">{_table("Test", rows)}</div>'


def _table(title: str, rows: Sequence[tuple[str, str, bool]]) -> str:
    if not rows:
        return ""
    lines = "".join(
        f"<tr{' class=given' if given else ''}><td>{html.escape(name)}</td>"
        f"<td>{html.escape(value)}</td></tr>"
        for name, value, given in rows
    )
    heading = f"<h2>{html.escape(title)}</h2>"
    return f'<section>{heading}<div class="card"><table>{lines}</table></div></section>'


def _charts(f: Facts) -> list[dict[str, Any]]:
    found = []
    for title, curves in {**charts(f.history), **f.extra}.items():
        shown = [curve for curve in curves if curve.points]
        if not shown:
            continue
        colors = _colors(shown)
        found.append(
            {
                "title": title,
                "axis": "update",
                "curves": [
                    {
                        "name": curve.name,
                        "faint": curve.faint,
                        "color": f"var(--c{color})",
                        "points": [[x, _finite(y)] for x, y in reduced(curve.points)],
                    }
                    for curve, color in zip(shown, colors, strict=True)
                ],
            }
        )
    return found


def _colors(curves: Sequence[Curve]) -> list[int]:
    """Training blue, validation orange; further curves of a phase take the other colours."""
    colors, taken = [], set[int]()
    for curve in curves:
        color = _PHASE_COLOR[curve.phase]
        if color in taken and not _belongs(curve, curves):
            free = [c for c in range(_COLORS) if c not in taken]
            color = free[0] if free else color
        taken.add(color)
        colors.append(color)
    return colors


def _belongs(curve: Curve, curves: Sequence[Curve]) -> bool:
    """Whether it is the epoch's curve of a faint one before it."""
    return any(c.faint and f"{c.name.removesuffix('_step')}_epoch" == curve.name for c in curves)


def _finite(y: float) -> float | None:
    return float(y) if math.isfinite(y) else None
