"""Logger for MLflow, by its own client."""

import os
import re
import warnings
from collections.abc import Callable, Mapping
from typing import Any, final

from minitorch.loggers.background import Sink
from minitorch.loggers.clients import client
from minitorch.loggers.pictures import png, to_pixels
from minitorch.loggers.queued_logger import FLUSH_SECS, QueuedLogger
from minitorch.loggers.values import check_step, flatten, to_params

_METRICS_A_CALL = 1000
_PARAMS_A_CALL = 100
_LONGEST_PARAM = 6000


@final
class MLFlowLogger(QueuedLogger):
    """Logs to an MLflow server, database or folder; `pip install "minitorch-trainer[mlflow]"`.

    Args:
        experiment_name: name of the experiment; it is made if there is none.
        run_name: name that the run is shown under.
        tracking_uri: where runs are kept: "http://…", "sqlite:///…" or "file:…"; default
            MLFLOW_TRACKING_URI, else "mlflow.db" in `save_dir`.
        tags: texts to find the run by.
        save_dir: folder for runs without a tracking_uri.
        log_model: True to upload the last checkpoint at the end of each run, "all" to upload every
            one when it is written.
        checkpoint_path_prefix: folder of checkpoints among the run's artifacts.
        prefix: text put before each name, with a "-" between.
        artifact_location: where a new experiment keeps its files; default below `save_dir`, or as
            the server has it.
        run_id: a run to continue.
        synchronous: accepted for Lightning's signature: a thread of its own writes here.
        flush_secs: the longest time in seconds that a record waits in memory.

    Raises:
        ModuleNotFoundError: the client is not installed; at the first record.
    """

    def __init__(
        self,
        experiment_name: str = "default",
        run_name: str | None = None,
        tracking_uri: str | None = None,
        tags: dict[str, Any] | None = None,
        save_dir: str | os.PathLike[str] | None = "./mlruns",
        log_model: bool | str = False,
        checkpoint_path_prefix: str = "",
        prefix: str = "",
        artifact_location: str | None = None,
        run_id: str | None = None,
        synchronous: bool | None = None,
        *,
        flush_secs: float = FLUSH_SECS,
    ) -> None:
        super().__init__(prefix, flush_secs)
        if log_model not in (True, False, "all"):
            raise ValueError(f'log_model must be True, False or "all". Got {log_model!r}.')
        uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI")
        self._save_dir = None if uri or save_dir is None else os.path.abspath(os.fspath(save_dir))
        self._uri = uri or f"sqlite:///{self._save_dir}/mlflow.db"
        self._experiment_name = experiment_name
        self._run_name = run_name
        self._tags = dict(tags or {})
        self._log_model = log_model
        self._folder = checkpoint_path_prefix
        if artifact_location is None and self._save_dir is not None:
            artifact_location = f"file:{self._save_dir}/artifacts"
        self._artifact_location = artifact_location
        self._run_id = run_id
        self._client: Any = None
        self._params: dict[str, str] = {}
        self._last: str | None = None

    @property
    def experiment(self) -> Any:
        """The client (`mlflow.MlflowClient`); `version` is the id of its run."""
        with self._lock:
            if self._client is None:
                mlflow = client("MLFlowLogger", "mlflow")
                if self._save_dir is not None:
                    os.makedirs(self._save_dir, exist_ok=True)
                self._client = mlflow.MlflowClient(self._uri)
                if self._run_id is None:
                    self._run_id = self._make_run()
            return self._client

    def _make_run(self) -> str:
        found = self._client.get_experiment_by_name(self._experiment_name)
        if found is None:
            number = self._client.create_experiment(self._experiment_name, self._artifact_location)
        else:
            number = found.experiment_id
        tags = {name: str(value) for name, value in self._tags.items()}
        run = self._client.create_run(number, tags=tags, run_name=self._run_name)
        return str(run.info.run_id)

    @property
    def name(self) -> str:
        """Name of the experiment."""
        return self._experiment_name

    @property
    def version(self) -> str:
        """Id of the run, which begins now if none was given."""
        if self._run_id is None:
            _ = self.experiment
        return str(self._run_id)

    run_id = version

    @property
    def save_dir(self) -> str | None:
        """Folder of the runs, if they lie in a folder of this machine."""
        return self._save_dir

    def log_hyperparams(self, params: Any, metrics: Mapping[str, Any] | None = None) -> None:
        """Record the hyperparameters; nested ones become `a/b`.

        MLflow never changes one: a new value of a known one is a warning.
        """
        new = {}
        for name, value in flatten(to_params(params)).items():
            key, text = _allowed(name), str(value)[:_LONGEST_PARAM]
            known = self._params.setdefault(key, text)
            if known != text:
                warnings.warn(
                    f"{self._label}: MLflow keeps the first value of a hyperparameter. Got "
                    f"{key}={text} after {known}. Start a new run for other hyperparameters.",
                    UserWarning,
                    stacklevel=2,
                )
            else:
                new[key] = text
        if new:
            self._later(lambda run: run.params(new))

    def log_image(self, tag: str, image: Any, step: int, dataformats: str = "CHW") -> None:
        """Keep a picture as `images/TAG/STEP.png` among the artifacts."""
        pixels = to_pixels(tag, image, dataformats)
        path = f"images/{_allowed(tag)}/{check_step(step):08d}.png"
        self._later(lambda run: run.file(path, png(pixels)), pixels.nbytes)

    def log_text(self, tag: str, text: str, step: int) -> None:
        """Keep a text as `texts/TAG/STEP.md` among the artifacts."""
        path, content = f"texts/{_allowed(tag)}/{check_step(step):08d}.md", str(text)
        self._later(lambda run: run.file(path, content.encode()), len(content))

    def after_save_checkpoint(
        self, path: str | None = None, metrics: Mapping[str, Any] | None = None
    ) -> None:
        """Upload the checkpoint, as `log_model` says."""
        if path is None or not self._log_model:
            return
        self._last = path
        if self._log_model == "all":
            self._upload()

    def finalize(self, status: str) -> None:
        """Write everything, and mark the run as finished or failed.

        Args:
            status: "success" or "finished"; anything else counts as a failure.
        """
        if self._log_model is True:
            self._upload()
        if self._client is not None:
            ended = "FINISHED" if status in ("success", "finished") else "FAILED"
            self._later(lambda run: run.client.set_terminated(run.id, ended))
        super().finalize(status)

    def _upload(self) -> None:
        path, self._last = self._last, None
        if path is not None and os.path.exists(path):
            folder = "/".join(filter(None, (self._folder, "checkpoints")))
            # At once: a better one may take the place of the file soon.
            self.experiment.log_artifact(self.version, path, folder)

    def _later(self, write: Callable[["_Run"], Any], nbytes: int = 0) -> None:
        (self._background or self._start()).put(write, nbytes)

    def _new_name(self, name: str) -> str:
        full = self._names[name] = _allowed(super()._new_name(name))
        return full

    @property
    def _label(self) -> str:
        return f"MLFlowLogger({self._experiment_name!r})"

    def _make_sink(self) -> Sink:
        return _Run(self)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_client": None, "_run_id": self.version}


def _allowed(name: str) -> str:
    """The name with what MLflow refuses replaced: letters, digits and `_-. :/` stay."""
    return re.sub(r"[^\w\-. :/]", "_", name)


class _Run(Sink):
    path = "the run"
    advice = "Check the tracking server."

    def __init__(self, logger: MLFlowLogger) -> None:
        self._logger = logger

    def open(self) -> None:
        self.client = self._logger.experiment
        self.id = self._logger.version

    def encode(self, item: Any) -> Any:
        return item

    def write(self, records: list[Any]) -> None:
        from mlflow.entities import Metric

        metrics: list[Any] = []
        for record in records:
            if callable(record):
                self._send(metrics)
                record(self)
                continue
            seconds, step, row = record
            at = int(1000 * seconds)
            metrics += [Metric(name, float(value), at, step) for name, value in row.items()]
        self._send(metrics)

    def _send(self, metrics: list[Any]) -> None:
        for start in range(0, len(metrics), _METRICS_A_CALL):
            self.client.log_batch(self.id, metrics=metrics[start : start + _METRICS_A_CALL])
        metrics.clear()

    def params(self, values: dict[str, str]) -> None:
        """Records hyperparameters."""
        from mlflow.entities import Param

        found = [Param(key, value) for key, value in values.items()]
        for start in range(0, len(found), _PARAMS_A_CALL):
            self.client.log_batch(self.id, params=found[start : start + _PARAMS_A_CALL])

    def file(self, path: str, data: bytes) -> None:
        """Keeps a file among the artifacts."""
        import tempfile

        folder, name = os.path.split(path)
        with tempfile.TemporaryDirectory() as scratch:
            local = os.path.join(scratch, name)
            with open(local, "wb") as file:
                file.write(data)
            self.client.log_artifact(self.id, local, folder)

    def sync(self) -> None:
        return None

    def close(self) -> None:
        return None
