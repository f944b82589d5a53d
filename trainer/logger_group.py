"""All loggers of a run behind one object; one that fails is dropped and named, the others go on."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from minitorch.errors import ArgumentError


class LoggerGroup:
    """Calls every logger; the first failure of one warns and drops it.

    Attributes:
        loggers: Those that still work.
        failures: One sentence for each that was dropped.
    """

    def __init__(self, loggers: Iterable[Any]) -> None:
        self.loggers = list(loggers)
        self.failures: list[str] = []

    def log_metrics(self, metrics: Mapping[str, float], step: int) -> None:
        """Passes numbers on."""
        self._each("log_metrics", metrics, step)

    def log_hyperparams(self, params: Mapping[str, Any]) -> None:
        """Passes hyper-parameters on."""
        self._each("log_hyperparams", params)

    def log_graph(self, graph: Any) -> None:
        """Passes the model's operations on."""
        self._each("log_graph", graph)

    def log_text(self, tag: str, text: str, step: int) -> None:
        """Passes a text on to those who take texts."""
        self._each("log_text", tag, text, step, optional=True)

    def log_histogram(self, tag: str, values: Any, step: int) -> None:
        """Passes the values of a distribution on to those who draw them."""
        self._each("log_histogram", tag, values, step, optional=True)

    def after_save_checkpoint(self, path: str, metrics: Mapping[str, float]) -> None:
        """Tells that a checkpoint was written."""
        self._each("after_save_checkpoint", path, metrics)

    def save(self) -> None:
        """Asks for what was logged to be written soon."""
        self._each("save")

    def finalize(self, status: str) -> None:
        """Lets every logger write everything and close."""
        self._each("finalize", status)

    def _each(self, method: str, *args: Any, optional: bool = False) -> None:
        for logger in list(self.loggers):
            if optional and not hasattr(logger, method):
                continue
            try:
                getattr(logger, method)(*args)
            except Exception as error:
                self.loggers.remove(logger)
                text = (
                    f"{type(logger).__name__}.{method} failed and this logger is dropped: "
                    f"{type(error).__name__}: {error}. Training goes on without it."
                )
                self.failures.append(text)
                warnings.warn(text, UserWarning, stacklevel=2)


def make_loggers(logger: Any, root_dir: str) -> list[Any]:
    """The loggers that the Trainer's argument names.

    Args:
        logger: A logger, several of them, True for TensorBoard, None or False for none.
        root_dir: Folder for TensorBoard's files.

    Raises:
        ArgumentError: Something in it is no logger.
    """
    if logger is None or logger is False:
        return []
    if logger is True:
        from minitorch.loggers import TensorBoardLogger

        return [TensorBoardLogger(root_dir)]
    found = list(logger) if isinstance(logger, Iterable) else [logger]
    for one in found:
        if not hasattr(one, "log_metrics") or isinstance(one, type):
            raise ArgumentError(
                "Trainer: logger must be an object of minitorch.loggers, a list of them, True "
                f"(TensorBoard) or False. Got {one!r}."
            )
    return found
