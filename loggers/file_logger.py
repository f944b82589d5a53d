"""What the loggers that write below `save_dir/name/version_N` have in common."""

import json
import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from minitorch.loggers.append_file import claim_version, explain, numbered
from minitorch.loggers.background import Background, Sink
from minitorch.loggers.logger import Logger
from minitorch.loggers.values import check_step, check_tag, to_json, to_number, to_params

FLUSH_SECS = 5.0


class FileLogger(Logger):
    """Base of the loggers with a folder per run and a background thread that writes.

    The folder is claimed when `version`, `log_dir` or a log method is first used; loggers that
    claim at the same moment, in any process, get different versions.
    """

    def __init__(
        self,
        save_dir: str | os.PathLike[str],
        name: str | None,
        version: int | str | None,
        prefix: str,
        flush_secs: float,
    ) -> None:
        if "://" in os.fspath(save_dir):
            raise ValueError(
                f"save_dir must be a folder on this machine. Got {os.fspath(save_dir)!r}. "
                "Log to a local folder and copy it, or mount the bucket."
            )
        if not flush_secs > 0:
            raise ValueError(f"flush_secs must be positive. Got {flush_secs}. The default is 5.")
        self._save_dir = os.path.expanduser(os.fspath(save_dir))
        self._name = name or ""
        self._version = version
        self.prefix = prefix
        self._flush_secs = flush_secs
        self._names: dict[str, str] = {}
        self._params: dict[str, Any] = {}
        self._params_file: str | None = None
        self._background: Background | None = None
        self._lock = threading.RLock()

    @property
    def save_dir(self) -> str:
        """Folder that holds all experiments."""
        return self._save_dir

    @property
    def name(self) -> str:
        """Name of the experiment: a folder below `save_dir` (none if empty)."""
        return self._name

    @property
    def root_dir(self) -> str:
        """Folder of the experiment: `save_dir/name`."""
        return os.path.join(self._save_dir, self._name) if self._name else self._save_dir

    @property
    def version(self) -> int | str:
        """Version of the run; if none was given, the next free `version_N` is claimed now."""
        if self._version is not None:
            return self._version
        with self._lock:
            if self._version is None:
                try:
                    self._version = claim_version(self.root_dir)
                except OSError as error:
                    raise explain(self._label, self.root_dir, error) from error
            return self._version

    @property
    def log_dir(self) -> str:
        """Folder of the run: `save_dir/name/version_N`, or the version itself if it is a text."""
        version = self.version
        folder = version if isinstance(version, str) else f"version_{version}"
        return os.path.join(self.root_dir, folder)

    def log_metrics(self, metrics: Mapping[str, Any], step: int) -> None:
        """Record numbers under their names at one step; costs a few microseconds.

        Args:
            metrics: name → number; one-element arrays of any library are accepted.
            step: x axis, an integer.

        Raises:
            TypeError: a value is not a real number, a name not a str, or the step not an integer.
            ValueError: a value has several elements.
            LoggerError: an earlier record could not be written (raised once).
        """
        if type(step) is not int or not -(2**63) <= step < 2**63:
            step = check_step(step)
        names = self._names
        row = {}
        for name, value in metrics.items():
            if type(value) is not float:
                value = to_number(name, value)
            row[names[name] if name in names else self._new_name(name)] = value
        if row:
            (self._background or self._start()).put((time(), step, row))

    def log_hyperparams(self, params: Any, metrics: Mapping[str, Any] | None = None) -> None:
        """Write the hyperparameters to `hparams.json`; several calls are merged.

        Args:
            params: a mapping (may be nested), a dataclass or a namespace.
            metrics: first values of the metrics to compare runs by, where the logger has them.
        """
        self._params |= to_params(params)
        text = json.dumps(to_json(self._params), indent=2) + "\n"
        folder = self.log_dir
        try:
            os.makedirs(folder, exist_ok=True)
            self._params_file = _write_params(folder, text, self._params_file)
        except OSError as error:
            raise explain(self._label, os.path.join(folder, "hparams.json"), error) from error

    def save(self) -> None:
        """Let the background thread write now; does not wait."""
        if self._background is not None:
            self._background.wake()

    def flush(self) -> None:
        """Write everything that was logged and sync the file.

        Raises:
            LoggerError: something could not be written.
        """
        if self._background is not None:
            self._background.flush()

    def finalize(self, status: str) -> None:
        """Flush and close the file; logging again reopens it.

        Args:
            status: how the run ended: "success", "failed", …

        Raises:
            LoggerError: something could not be written.
        """
        if self._background is not None:
            self._background.close()

    @property
    def _label(self) -> str:
        return f"{type(self).__name__}({self._save_dir!r})"

    @abstractmethod
    def _make_sink(self, folder: str) -> Sink:
        """The file in the run's folder."""

    def _wake_at(self) -> int:
        """Number of waiting records that wakes the background thread."""
        return 1000

    def _check_name(self, name: str) -> None:
        """Refuse a name that the format cannot hold."""
        return None

    def _new_name(self, name: str) -> str:
        full = f"{self.prefix}-{check_tag(name)}" if self.prefix else check_tag(name)
        self._check_name(full)
        self._names[name] = full
        return full

    def _start(self) -> Background:
        with self._lock:
            if self._background is None:
                background = Background(
                    self._make_sink(self.log_dir),
                    label=self._label,
                    flush_secs=self._flush_secs,
                    wake_at=self._wake_at(),
                )
                background.start()
                weakref.finalize(self, background.close_quietly).atexit = False
                self._background = background
            return self._background

    def __getstate__(self) -> dict[str, Any]:
        # A copy, here or in another process, continues the run in a file of its own.
        return {
            **self.__dict__,
            "_background": None,
            "_params_file": None,
            "_lock": None,
            "_version": self.version,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.RLock()


def _write_params(folder: str, text: str, owned: str | None) -> str | None:
    if owned is not None:
        temporary = f"{owned}.{os.getpid()}.tmp"
        Path(temporary).write_text(text, encoding="utf-8")
        os.replace(temporary, owned)
        return owned
    paths = numbered(folder, "hparams.json")
    while True:
        path = next(paths)
        try:
            with open(path, "x", encoding="utf-8") as file:
                file.write(text)
            return path
        except FileExistsError:
            if Path(path).read_text(encoding="utf-8") == text:
                return None
