"""The interface of every logger, and the error that a failing one raises."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Protocol


class LoggerError(RuntimeError):
    """A logger could not write; the message names the logger, the path and the fix."""


class GraphNode(Protocol):
    """One operation of a model: its unique name, kind, inputs (names) and attributes."""

    @property
    def name(self) -> str: ...
    @property
    def op(self) -> str: ...
    @property
    def inputs(self) -> Iterable[str]: ...
    @property
    def attrs(self) -> Mapping[str, str]: ...


class Graph(Protocol):
    """A model as a neutral list of operations."""

    @property
    def nodes(self) -> Iterable[GraphNode]: ...


class Logger(ABC):
    """Base of all loggers: subclass it and write `name`, `version` and `log_metrics`.

    Kinds that a logger does not support (histograms, images, text, graphs, hyperparameters) are
    no-ops here. Values are Python numbers, NumPy arrays, or objects with `.numpy()`, `.get()`
    (CuPy) or `__array__`.
    """

    group_separator = "/"
    prefix = ""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name of the experiment."""

    @property
    @abstractmethod
    def version(self) -> int | str:
        """Version of the experiment: one run."""

    @property
    def save_dir(self) -> str | None:
        """Folder that holds all experiments; None if nothing is kept on this disk."""
        return None

    @property
    def root_dir(self) -> str | None:
        """Folder of this experiment; None if nothing is kept on this disk."""
        return self.save_dir

    @property
    def log_dir(self) -> str | None:
        """Folder of this run; None if nothing is kept on this disk."""
        return self.save_dir

    @property
    def wants_graph(self) -> bool:
        """Whether the Trainer should build the model's graph and pass it to `log_graph`."""
        return False

    @abstractmethod
    def log_metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Record numbers under their names at one step."""

    def log_hyperparams(self, params: Any, metrics: Mapping[str, Any] | None = None) -> None:
        """Record the run's hyperparameters, and the first values of metrics to compare runs by."""
        return None

    def log_graph(self, graph: Graph) -> None:
        """Record the model's operations."""
        return None

    def log_histogram(self, tag: str, values: Any, step: int) -> None:
        """Record the distribution of an array's values."""
        return None

    def log_image(self, tag: str, image: Any, step: int, dataformats: str = "CHW") -> None:
        """Record a picture: uint8, or floats in [0, 1]."""
        return None

    def log_text(self, tag: str, text: str, step: int) -> None:
        """Record a text (Markdown where the viewer knows it)."""
        return None

    def save(self) -> None:
        """Ask for what was logged to be written soon; never waits."""
        return None

    def flush(self) -> None:
        """Write everything that was logged; on return it is on disk."""
        return None

    def finalize(self, status: str) -> None:
        """Write everything and close; calling it again does nothing, logging again reopens."""
        return None

    def after_save_checkpoint(
        self, path: str | None = None, metrics: Mapping[str, Any] | None = None
    ) -> None:
        """Learn that a checkpoint was written, with the metrics it was written for."""
        return None
