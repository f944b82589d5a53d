"""What the loggers that write below `save_dir/name/version_N` have in common."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from minitorch.loggers.append_file import claim_version, explain, numbered
from minitorch.loggers.queued_logger import FLUSH_SECS as FLUSH_SECS
from minitorch.loggers.queued_logger import QueuedLogger
from minitorch.loggers.values import to_json, to_params


class FileLogger(QueuedLogger):
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
        super().__init__(prefix, flush_secs)
        self._save_dir = os.path.expanduser(os.fspath(save_dir))
        self._name = name or ""
        self._version = version
        self._params: dict[str, Any] = {}
        self._params_file: str | None = None

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

    @property
    def _label(self) -> str:
        return f"{type(self).__name__}({self._save_dir!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_params_file": None, "_version": self.version}


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
