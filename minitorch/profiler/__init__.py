"""Where time and memory go, operation by operation, under PyTorch's names."""

from __future__ import annotations

from .events import EventList, FunctionEvent, FunctionEventAvg
from .labels import record_function
from .recorder import Recorder
from .session import (
    ProfilerAction,
    ProfilerActivity,
    profile,
    schedule,
    supported_activities,
    tensorboard_trace_handler,
)

__all__ = [
    "EventList",
    "FunctionEvent",
    "FunctionEventAvg",
    "ProfilerAction",
    "ProfilerActivity",
    "Recorder",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]
