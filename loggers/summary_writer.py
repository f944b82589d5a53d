"""tensorboardX's SummaryWriter on the file of a TensorBoardLogger, without its queue and thread."""

from collections.abc import Mapping
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any

from tensorboardX import FileWriter, SummaryWriter

from minitorch.loggers import events
from minitorch.loggers.pictures import to_pixels
from minitorch.loggers.values import check_step, to_number, to_real_array

if TYPE_CHECKING:
    from minitorch.loggers.tensorboard_logger import TensorBoardLogger


class _RunFile(FileWriter):
    """Hands each event to the logger: one file, one run, wall time always set."""

    def __init__(self, logger: "TensorBoardLogger") -> None:
        self._logger = logger
        self._default_metadata: dict[str, Any] = {}

    def get_logdir(self) -> str:
        """Folder of the event file."""
        return self._logger.log_dir

    def place(self, step: Any, walltime: float | None) -> tuple[int, float]:
        """Step and wall time of a call: its own, those of `use_metadata`, or 0 and now."""
        if step is None:
            step = self._default_metadata.get("global_step")
        if walltime is None:
            walltime = self._default_metadata.get("walltime")
        return 0 if step is None else check_step(step), time() if walltime is None else walltime

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Write an Event message."""
        placed_step, event.wall_time = self.place(step, walltime)
        event.step = event.step or placed_step
        self._logger._put(0, event.SerializeToString())

    def flush(self) -> None:
        """Write everything to disk."""
        self._logger.flush()

    def close(self) -> None:
        """Write everything to disk; the logger closes the file."""
        self._logger.flush()

    def reopen(self) -> None:
        """Nothing to do: the logger reopens its file when needed."""
        return None


class RunWriter(SummaryWriter):
    """All of tensorboardX's `add_*` methods, into the logger's own run and file.

    Tags are kept as they are in the methods below; arrays of any library are accepted there.
    """

    def __init__(self, logger: "TensorBoardLogger") -> None:
        self._logger = logger
        self._run_file = _RunFile(logger)
        super().__init__(logdir=logger.log_dir)

    def _get_file_writer(self) -> _RunFile:
        self.file_writer = self._run_file
        self.all_writers = {self._run_file.get_logdir(): self._run_file}
        return self._run_file

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        display_name: str = "",
        summary_description: str = "",
    ) -> None:
        """Write one number."""
        if display_name or summary_description:
            number = to_number(tag, scalar_value)
            super().add_scalar(
                tag, number, global_step, walltime, display_name, summary_description
            )
            return
        step, wall_time = self._run_file.place(global_step, walltime)
        self._logger._put(step, {tag: to_number(tag, scalar_value)}, wall_time=wall_time)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write several numbers as `main_tag/key` of this run; no further runs or files."""
        step, wall_time = self._run_file.place(global_step, walltime)
        row = {f"{main_tag}/{key}": to_number(key, x) for key, x in tag_scalar_dict.items()}
        self._logger._put(step, row, wall_time=wall_time)

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: int | None = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Write the distribution of real values."""
        array = to_real_array(tag, values)
        if bins != "tensorflow" or max_bins is not None:
            super().add_histogram(tag, array, global_step, bins, walltime, max_bins)
            return
        self._later(partial(events.histogram, tag, array), global_step, walltime, array.nbytes)

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Write one picture."""
        pixels = to_pixels(tag, img_tensor, dataformats)
        self._later(partial(events.image, tag, pixels), global_step, walltime, pixels.nbytes)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Write a batch of pictures as one grid."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_text(
        self,
        tag: str,
        text_string: str,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Write a text."""
        self._later(partial(events.text, tag, text_string), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: Mapping[str, Any],
        metric_dict: Mapping[str, Any],
        name: str | None = None,
        global_step: int | None = None,
    ) -> None:
        """Show hyperparameters under this run; no run of their own is made, `name` is not used."""
        self._logger._open_session(hparam_dict, metric_dict, check_step(global_step or 0))

    def close(self) -> None:
        """Write everything to disk; the logger closes the file."""
        self._run_file.flush()

    def _later(self, build: Any, step: Any, walltime: float | None, nbytes: int = 0) -> None:
        placed_step, wall_time = self._run_file.place(step, walltime)
        self._logger._put(placed_step, build, nbytes, wall_time)
