"""What distributions of one probability share: it is given as such, or as log-odds."""

from __future__ import annotations

from typing import Any, ClassVar

from .distribution import Distribution
from .utils import lazy_property, logits_to_probs, probs_to_logits


class OddsDistribution(Distribution):
    """A distribution with `probs` or `logits`; the other one is computed when it is read."""

    _tensors: ClassVar[dict[str, int]] = {"probs": 0, "logits": 0}

    @lazy_property
    def logits(self) -> Any:
        """Log-odds of 1, or of success."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Any:
        """Probability of 1, or of success."""
        return logits_to_probs(self.logits, is_binary=True)
