"""A line search that ends where the strong Wolfe conditions hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

ARMIJO = 1e-4
CURVATURE = 0.9


class Point(NamedTuple):
    """A place on the line.

    Attributes:
        t: How far along the direction.
        value: The function there.
        slope: Its derivative along the direction.
        gradient: Its gradient.
    """

    t: float
    value: float
    slope: float
    gradient: Any


Evaluate = Callable[[float], Point]


def strong_wolfe(
    evaluate: Evaluate, start: Point, t: float, largest: float, tolerance: float, most: int
) -> tuple[Point, int]:
    """A point with `f(t) ≤ f(0) + c₁·t·f'(0)` and `|f'(t)| ≤ c₂·|f'(0)|`, or the best one found.

    Args:
        evaluate: Gives the point at a distance.
        start: The point at distance 0; its slope is negative.
        t: The first distance to try.
        largest: Largest element of the direction, to judge how far points lie apart.
        tolerance: Points closer than this are one.
        most: Rounds at most.

    Returns:
        The point, and how often `evaluate` was called.

    Source: Numerical Optimization, Nocedal and Wright, 2006, algorithms 3.5 and 3.6.
    """
    point, before, rounds = evaluate(t), start, 0
    while rounds < most:
        if _rises(point, start) or (rounds > 1 and point.value >= before.value):
            break
        if abs(point.slope) <= -CURVATURE * start.slope:
            return point, rounds + 1
        if point.slope >= 0:
            break
        low, high = point.t + 0.01 * (point.t - before.t), point.t * 10
        further = _cubic(before, point, low, high)
        before, point = point, evaluate(further)
        rounds += 1
    else:
        before = start
    return _zoom(evaluate, start, [before, point], largest, tolerance, (rounds, most))


def _rises(point: Point, start: Point) -> bool:
    return point.value > start.value + ARMIJO * point.t * start.slope


def _zoom(
    evaluate: Evaluate, start: Point, bracket: list[Point], largest: float, tolerance: float,
    rounds: tuple[int, int],
) -> tuple[Point, int]:  # fmt: skip
    """Narrows a bracket around the point that is looked for."""
    done, most = rounds
    stuck = False
    low = 0 if bracket[0].value <= bracket[1].value else 1
    while done < most:
        first, second = bracket
        if abs(second.t - first.t) * largest < tolerance:
            break
        left, right = sorted((first.t, second.t))
        t = _cubic(first, second, left, right)
        # A point close to an end shrinks the bracket too little; the second time it is moved in.
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        point = evaluate(t)
        done += 1
        if _rises(point, start) or point.value >= bracket[low].value:
            bracket[1 - low] = point
            low = 0 if bracket[0].value <= bracket[1].value else 1
            continue
        if abs(point.slope) <= -CURVATURE * start.slope:
            return point, done + 1
        if point.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = point
    return bracket[low], done + 1


def _cubic(a: Point, b: Point, low: float, high: float) -> float:
    """The minimum of the cubic through two points with their slopes, kept in [low, high]."""
    if a.t > b.t:
        a, b = b, a
    if a.t == b.t:
        return (low + high) / 2
    d1 = a.slope + b.slope - 3 * (a.value - b.value) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (low + high) / 2
    d2 = math.sqrt(square)
    below = b.slope - a.slope + 2 * d2
    if below == 0:
        return (low + high) / 2
    t = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / below)
    return min(max(t, low), high)
