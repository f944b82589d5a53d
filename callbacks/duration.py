"""Spans of time as users write them and as they are shown."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Any

from minitorch.errors import ArgumentError

_FORM = re.compile(r"(\d+):(\d\d):(\d\d):(\d\d)")


def parse_duration(owner: str, value: Any) -> timedelta:
    """Reads a span of time.

    Args:
        owner: What it is for, in messages.
        value: "DD:HH:MM:SS", a timedelta, or the keywords of one as a dict.

    Raises:
        ArgumentError: It is none of these, or not above zero.
    """
    span = value
    if isinstance(value, str):
        match = _FORM.fullmatch(value.strip())
        span = None
        if match:
            days, hours, minutes, seconds = map(int, match.groups())
            span = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
    elif isinstance(value, dict):
        try:
            span = timedelta(**value)
        except TypeError:
            span = None
    if not isinstance(span, timedelta) or span <= timedelta():
        raise ArgumentError(
            f'{owner} must be a span of time above zero: "DD:HH:MM:SS", a timedelta, or a dict '
            f'such as {{"minutes": 90}}. Got {value!r}. Half an hour is "00:00:30:00".'
        )
    return span


def clock(seconds: float) -> str:
    """A span for people: 7.3s, 0:42, 1:02:03, 2d 03:04:05.

    Args:
        seconds: The span, in seconds; negative ones are shown as zero.
    """
    if not math.isfinite(seconds):
        return "?"
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f}s"
    minutes, second = divmod(int(seconds + 0.5), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days}d {hour:02}:{minute:02}:{second:02}"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"
