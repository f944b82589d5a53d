"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from . import constraints
from .gamma import Gamma
from .utils import broadcast_all


class Chi2(Gamma):
    """The sum of `df` squared standard normal variables.

    Args:
        df: Degrees of freedom, above 0.
        validate_args: As in `Distribution`.
    """

    arg_constraints: ClassVar[Any] = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args)

    @property
    def df(self) -> Any:
        """Degrees of freedom."""
        return self.concentration * 2
