"""Triggers: when something happens, in epochs, updates, batches, samples or time.

`Steps(100)` comes due whenever the count of updates passes a multiple of 100. Triggers combine:
`Steps(100) | Minutes(5)`, `Steps(100) & Minutes(5)`, `Epochs(1).after(Steps(1000))`,
`Once(Samples(1e6))`. They have state, which their owner saves with its own.

A trigger is asked after each training batch and at the end of each epoch. Whole epochs come due at
the end of the epoch, when its metrics are final; all else after the batch that completes it.
"""

from minitorch.callbacks.triggers.combined import After as After
from minitorch.callbacks.triggers.combined import AllOf as AllOf
from minitorch.callbacks.triggers.combined import AnyOf as AnyOf
from minitorch.callbacks.triggers.combined import Once as Once
from minitorch.callbacks.triggers.combined import Until as Until
from minitorch.callbacks.triggers.trigger import Trigger as Trigger
from minitorch.callbacks.triggers.trigger import as_trigger as as_trigger
from minitorch.callbacks.triggers.units import At as At
from minitorch.callbacks.triggers.units import Batches as Batches
from minitorch.callbacks.triggers.units import Epochs as Epochs
from minitorch.callbacks.triggers.units import Hours as Hours
from minitorch.callbacks.triggers.units import Interval as Interval
from minitorch.callbacks.triggers.units import Minutes as Minutes
from minitorch.callbacks.triggers.units import Samples as Samples
from minitorch.callbacks.triggers.units import Seconds as Seconds
from minitorch.callbacks.triggers.units import Steps as Steps
from minitorch.callbacks.triggers.units import When as When

__all__ = [
    "After",
    "AllOf",
    "AnyOf",
    "At",
    "Batches",
    "Epochs",
    "Hours",
    "Interval",
    "Minutes",
    "Once",
    "Samples",
    "Seconds",
    "Steps",
    "Trigger",
    "Until",
    "When",
    "as_trigger",
]
