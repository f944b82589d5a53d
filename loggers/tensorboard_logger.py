"""Logger that writes TensorBoard's event files through tensorboardX."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from time import time
from types import ModuleType
from typing import TYPE_CHECKING, Any, final

from minitorch.loggers.background import Background, Sink
from minitorch.loggers.event_file import EventFile
from minitorch.loggers.file_logger import FLUSH_SECS, FileLogger
from minitorch.loggers.logger import Graph
from minitorch.loggers.pictures import to_pixels
from minitorch.loggers.values import check_step, flatten, to_number, to_real_array

if TYPE_CHECKING:
    from minitorch.loggers.summary_writer import RunWriter


@final
class TensorBoardLogger(FileLogger):
    """Writes one event file in `save_dir/name/version_N`; view it with `tensorboard --logdir`.

    Hyperparameters appear in the HParams tab under the run itself and in `hparams.json`. Tags are
    kept as they are. Scalars are stored as float32, TensorBoard's format; CSVLogger keeps float64.
    Two loggers of one folder write two files: start TensorBoard with `--reload_multifile=true` to
    follow both live.

    Args:
        save_dir: folder that holds all experiments.
        name: name of the experiment; "" for no folder of its own.
        version: int for `version_N`, a text for that folder, None for the next free number; another
            logger's `version` shares its folder.
        log_graph: whether the Trainer passes the model's graph.
        default_hp_metric: log `hp_metric` = -1 with hyperparameters that come without metrics.
        prefix: text put before each name, with a "-" between.
        sub_dir: folder below the run's folder for the event file.
        layout: charts of several metrics in the Custom Scalars tab, as tensorboardX takes them:
            `{"Quality": {"loss": ["Multiline", ["train/loss", "val/loss"]]}}`.
        flush_secs: the longest time in seconds that a record waits in memory.
    """

    def __init__(
        self,
        save_dir: str | os.PathLike[str],
        name: str | None = "default",
        version: int | str | None = None,
        log_graph: bool = False,
        default_hp_metric: bool = True,
        prefix: str = "",
        sub_dir: str | os.PathLike[str] | None = None,
        *,
        layout: Mapping[str, Mapping[str, Any]] | None = None,
        flush_secs: float = FLUSH_SECS,
    ) -> None:
        super().__init__(save_dir, name, version, prefix, flush_secs)
        self._log_graph = log_graph
        self._default_hp_metric = default_hp_metric
        self._sub_dir = "" if sub_dir is None else os.path.expanduser(os.fspath(sub_dir))
        self._layout = layout
        self._session = False
        self._writer: RunWriter | None = None

    @property
    def log_dir(self) -> str:
        """Folder of the event file: the run's folder, and `sub_dir` if one was given."""
        return os.path.join(super().log_dir, self._sub_dir) if self._sub_dir else super().log_dir

    @property
    def wants_graph(self) -> bool:
        """Whether `log_graph=True` was passed."""
        return self._log_graph

    @property
    def experiment(self) -> "RunWriter":
        """A tensorboardX SummaryWriter on this logger's file, for kinds that have no method here.

        Its scalars, histograms, images, texts and hyperparameters go through this logger; nothing
        it writes makes a second file or run.
        """
        if self._writer is None:
            _load("events")
            self._writer = _load("summary_writer").RunWriter(self)
        return self._writer

    def log_hyperparams(self, params: Any, metrics: Mapping[str, Any] | None = None) -> None:
        """Show the hyperparameters in the HParams tab of this run, and write `hparams.json`.

        Args:
            params: a mapping (nested ones become `a/b`), a dataclass or a namespace.
            metrics: metrics to compare runs by, with their values at step 0.
        """
        if metrics is None:
            metrics = {"hp_metric": -1} if self._default_hp_metric else {}
        self._open_session(params, metrics, 0)

    def log_graph(self, graph: Graph) -> None:
        """Show the model's operations in the Graphs tab.

        Args:
            graph: its `nodes` have `name`, `op`, `inputs` (names) and `attrs` (texts). A "/" in a
                name opens a scope; the attributes `shape` and `device` are understood.
        """
        self._put(0, _load("events").graph(graph, time()))

    def log_histogram(self, tag: str, values: Any, step: int) -> None:
        """Show the distribution of real values, any shape; the values are copied at once.

        Non-finite values are left out, as TensorBoard cannot place them.
        """
        array = to_real_array(tag, values)
        self._log(tag, step, partial(_load("events").histogram, values=array), array.nbytes)

    def log_image(self, tag: str, image: Any, step: int, dataformats: str = "CHW") -> None:
        """Show a picture: uint8, or floats in [0, 1]; "NCHW" and "NHWC" make one grid."""
        pixels = to_pixels(tag, image, dataformats)
        self._log(tag, step, partial(_load("events").image, pixels=pixels), pixels.nbytes)

    def log_text(self, tag: str, text: str, step: int) -> None:
        """Show a text, rendered as Markdown."""
        content = str(text)
        self._log(tag, step, partial(_load("events").text, content=content), len(content))

    def finalize(self, status: str) -> None:
        """Close the HParams session with the status, flush, and close the file.

        Args:
            status: "success" or "finished"; anything else counts as a failure.
        """
        if self._session:
            self._session = False
            self._put(0, _load("events").hparams_end(status in ("success", "finished"), time()))
        super().finalize(status)

    def _open_session(self, params: Any, metrics: Mapping[str, Any], step: int) -> None:
        super().log_hyperparams(params, metrics)
        first = {name: to_number(name, value) for name, value in metrics.items()}
        tags = [self._names.get(name) or self._new_name(name) for name in first]
        for summary in _load("events").hparams_start(flatten(self._params), tags, time()):
            self._put(0, summary)
        self._session = True
        self.log_metrics(first, step)

    def _log(self, tag: str, step: int, build: Callable[..., Any], nbytes: int) -> None:
        name = self._names[tag] if tag in self._names else self._new_name(tag)
        self._put(check_step(step), partial(build, name), nbytes)

    def _put(
        self, step: int, payload: Any, nbytes: int = 0, wall_time: float | None = None
    ) -> None:
        background = self._background or self._start()
        background.put((time() if wall_time is None else wall_time, step, payload), nbytes)

    def _make_sink(self) -> Sink:
        return EventFile(self.log_dir, _load("events").EventEncoder())

    def _start(self) -> Background:
        background, layout = super()._start(), self._layout
        if layout is not None:
            self._layout = None
            self.experiment.add_custom_scalars(layout)
        return background

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_writer": None, "_session": False}


_loaded: dict[str, ModuleType] = {}


def _load(name: str) -> ModuleType:
    """A module of this package that needs tensorboardX, imported at its first use."""
    if name not in _loaded:
        from importlib import import_module

        with _without_torch():
            try:
                _loaded[name] = import_module(f"minitorch.loggers.{name}")
            except ModuleNotFoundError as error:
                if error.name is None or not error.name.startswith("tensorboardX"):
                    raise
                raise ModuleNotFoundError(
                    "TensorBoardLogger needs tensorboardX, which is not installed. "
                    "Run: pip install tensorboardX (or use CSVLogger).",
                    name=error.name,
                ) from error
    return _loaded[name]


@contextmanager
def _without_torch() -> Iterator[None]:
    # tensorboardX imports torch, where it is installed, for one type annotation: two seconds and
    # hundreds of megabytes that no file needs.
    if "torch" in sys.modules or "tensorboardX" in sys.modules:
        yield
        return
    sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules["torch"]
