"""Logger for Weights & Biases, by its own client."""

import atexit
import os
from collections.abc import Callable, Mapping
from typing import Any, final

from minitorch.loggers.background import Sink
from minitorch.loggers.clients import client
from minitorch.loggers.pictures import to_pixels
from minitorch.loggers.queued_logger import FLUSH_SECS, QueuedLogger
from minitorch.loggers.values import check_step, to_json, to_params, to_real_array

_STEP = "trainer/global_step"


@final
class WandbLogger(QueuedLogger):
    """Logs to Weights & Biases; `pip install "minitorch-trainer[wandb]"`.

    The axis of all charts is `trainer/global_step`. The run begins with the first record and ends
    with the program, so that a test after a fit belongs to it. Without a network pass
    `offline=True` (or set WANDB_MODE=offline) and send it later with `wandb sync`.

    Args:
        name: name that the run is shown under.
        save_dir: folder for the client's files.
        version: id of the run; an existing one is continued.
        offline: write to `save_dir` only.
        dir: the client's name for save_dir.
        id: the client's name for version.
        project: name of the project; default WANDB_PROJECT or "minitorch".
        log_model: True to upload the last checkpoint at the end of each run, "all" to upload every
            one when it is written.
        experiment: a run that `wandb.init` made, to log to.
        prefix: text put before each name, with a "-" between.
        checkpoint_name: name of the model's artifact; default "model-ID".
        flush_secs: the longest time in seconds that a record waits in memory.
        options: more arguments of `wandb.init`, such as `entity`, `tags`, `group`.

    Raises:
        ModuleNotFoundError: the client is not installed; at the first record.
    """

    def __init__(
        self,
        name: str | None = None,
        save_dir: str | os.PathLike[str] = ".",
        version: str | None = None,
        offline: bool = False,
        dir: str | os.PathLike[str] | None = None,
        id: str | None = None,
        project: str | None = None,
        log_model: bool | str = False,
        experiment: Any = None,
        prefix: str = "",
        checkpoint_name: str | None = None,
        *,
        flush_secs: float = FLUSH_SECS,
        **options: Any,
    ) -> None:
        super().__init__(prefix, flush_secs)
        if log_model not in (True, False, "all"):
            raise ValueError(f'log_model must be True, False or "all". Got {log_model!r}.')
        self._save_dir = os.fspath(dir if dir is not None else save_dir)
        self._project = project or os.environ.get("WANDB_PROJECT", "minitorch")
        self._id = id if version is None else version
        self._log_model = log_model
        self._experiment = experiment
        self._checkpoint_name = checkpoint_name
        self._last: tuple[str, dict[str, Any]] | None = None
        self._watched: list[tuple[Any, Any]] = []
        self._options = {"name": name, **options}
        if offline:
            self._options["mode"] = "offline"

    @property
    def experiment(self) -> Any:
        """The client's run, for everything that has no method here."""
        with self._lock:
            if self._experiment is None:
                wandb = client("WandbLogger", "wandb")
                os.makedirs(self._save_dir, exist_ok=True)
                self._experiment = wandb.init(
                    project=self._project,
                    id=self._id,
                    dir=self._save_dir,
                    resume="allow",
                    **self._options,
                )
                # What waits must be out before the client's own end, which comes after this.
                atexit.register(self._drain_quietly)
                self._experiment.define_metric(_STEP)
                self._experiment.define_metric("*", step_metric=_STEP, step_sync=True)
            return self._experiment

    @property
    def name(self) -> str:
        """Name of the project."""
        return self._project

    @property
    def version(self) -> str:
        """Id of the run, which begins now if none was given."""
        return str(self._id or self.experiment.id)

    @property
    def save_dir(self) -> str:
        """Folder for the client's files."""
        return self._save_dir

    def log_hyperparams(self, params: Any, metrics: Mapping[str, Any] | None = None) -> None:
        """Show the hyperparameters as the run's configuration."""
        values = to_json(to_params(params))
        self._later(lambda run: run.config.update(values, allow_val_change=True))

    def log_histogram(self, tag: str, values: Any, step: int) -> None:
        """Show the distribution of real values."""
        array = to_real_array(tag, values).reshape(-1)
        self._media(tag, step, lambda wandb: wandb.Histogram(array), array.nbytes)

    def watch(
        self, model: Any, log: str | None = "gradients", log_freq: int = 100, log_graph: bool = True
    ) -> None:
        """Show the distributions of a module's gradients or weights from now on, until `unwatch`.

        The axis counts backward passes. `GradientStatistics(histograms=True)` does the same by
        updates, for every logger that draws distributions.

        Args:
            model: What has `named_parameters()`.
            log: "gradients", "parameters", "all", or None for nothing.
            log_freq: Backward passes between two looks.
            log_graph: Accepted: TensorBoardLogger(log_graph=True) draws the graph.

        Raises:
            ValueError: An argument is out of range.
        """
        if log not in ("gradients", "parameters", "all", None):
            raise ValueError(f'log must be "gradients", "parameters", "all" or None. Got {log!r}.')
        if type(log_freq) is not int or log_freq < 1:
            raise ValueError(f"log_freq must be an integer ≥ 1. Got {log_freq!r}.")
        for name, parameter in model.named_parameters() if log else ():
            if parameter.requires_grad:
                look = _Watch(self, name, parameter, log, log_freq)
                self._watched.append((model, parameter.register_hook(look)))

    def unwatch(self, model: Any = None) -> None:
        """Ends `watch` for a module, or for all."""
        for owner, handle in self._watched:
            if model is None or owner is model:
                handle.remove()
        left = [pair for pair in self._watched if model is not None and pair[0] is not model]
        self._watched = left

    def log_image(self, tag: str, image: Any, step: int, dataformats: str = "CHW") -> None:
        """Show a picture: uint8, or floats in [0, 1]."""
        pixels = to_pixels(tag, image, dataformats)
        self._media(tag, step, lambda wandb: wandb.Image(pixels), pixels.nbytes)

    def log_text(self, tag: str, text: str, step: int) -> None:
        """Show a text."""
        content = str(text)
        self._media(tag, step, lambda wandb: wandb.Table(columns=["text"], data=[[content]]))

    def log_table(self, key: str, columns: list[str], data: list[list[Any]], step: int) -> None:
        """Show a table of texts, numbers or the client's media."""
        self._media(key, step, lambda wandb: wandb.Table(columns=columns, data=data))

    def after_save_checkpoint(
        self, path: str | None = None, metrics: Mapping[str, Any] | None = None
    ) -> None:
        """Upload the checkpoint, as `log_model` says."""
        if path is None or not self._log_model:
            return
        self._last = (path, dict(metrics or {}))
        if self._log_model == "all":
            self._upload()

    def finalize(self, status: str) -> None:
        """Write everything; the client's run ends with the program."""
        if self._log_model is True:
            self._upload()
        super().finalize(status)
        if self._experiment is not None and status not in ("success", "finished"):
            self._experiment.summary["status"] = status

    def _upload(self) -> None:
        last, self._last = self._last, None
        if last is None:
            return
        path, metrics = last
        wandb = client("WandbLogger", "wandb")
        name = self._checkpoint_name or f"model-{self.version}"
        artifact = wandb.Artifact(name, type="model", metadata=to_json(metrics))
        artifact.add_file(path, name="model.ckpt")  # copied now: the file may go soon
        self._later(lambda run: run.log_artifact(artifact, aliases=["latest"]))

    def _media(self, tag: str, step: int, build: Callable[[Any], Any], nbytes: int = 0) -> None:
        name, number = self._names.get(tag) or self._new_name(tag), check_step(step)

        def write(run: Any) -> None:
            run.log({name: build(client("WandbLogger", "wandb")), _STEP: number})

        self._later(write, nbytes)

    def _later(self, write: Callable[[Any], Any], nbytes: int = 0) -> None:
        (self._background or self._start()).put(write, nbytes)

    def _drain_quietly(self) -> None:
        if self._background is not None:
            self._background.close_quietly()

    @property
    def _label(self) -> str:
        return f"WandbLogger({self._project!r})"

    def _make_sink(self) -> Sink:
        return _Run(self)

    def __getstate__(self) -> dict[str, Any]:
        own: dict[str, Any] = {"_experiment": None, "_id": self.version, "_watched": []}
        return {**super().__getstate__(), **own}


class _Watch:
    """What looks at the gradient of a parameter."""

    def __init__(
        self, logger: WandbLogger, name: str, parameter: Any, kinds: str | None, every: int
    ) -> None:
        self._logger, self._name, self._parameter = logger, name, parameter
        self._kinds, self._every, self._count = kinds, every, 0

    def __call__(self, gradient: Any) -> None:
        self._count += 1
        if self._count % self._every:
            return
        found = {"gradients": gradient, "parameters": self._parameter}
        for kind, values in found.items():
            if self._kinds in (kind, "all"):
                array = values.detach().cpu()
                self._logger.log_histogram(f"{kind}/{self._name}", array, self._count)


class _Run(Sink):
    path = "the run"
    advice = "Look at the client's log below save_dir/wandb."

    def __init__(self, logger: WandbLogger) -> None:
        self._logger = logger

    def open(self) -> None:
        self._run = self._logger.experiment

    def encode(self, item: Any) -> Callable[[Any], Any]:
        if callable(item):
            return item
        _, step, row = item
        return lambda run: run.log({**row, _STEP: step})

    def write(self, records: list[Callable[[Any], Any]]) -> None:
        for record in records:
            record(self._run)

    def sync(self) -> None:
        return None

    def close(self) -> None:
        return None
