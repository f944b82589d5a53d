"""DeviceStatsMonitor: what the device and the host have to do."""

from __future__ import annotations

from collections.abc import Set
from typing import TYPE_CHECKING, Any

from minitorch.callbacks.callback import Callback, Order
from minitorch.callbacks.extras import needed
from minitorch.errors import ArgumentError

if TYPE_CHECKING:
    from minitorch.trainer import TaskModule, Trainer


class DeviceStatsMonitor(Callback):
    """Logs memory of the GPU and load of the host, every `log_every_n_steps` updates.

    Names begin with "DeviceStatsMonitor/": on a GPU `memory_allocated`, `memory_reserved` and
    `memory_free` in bytes, of the host `cpu_percent`, `cpu_vm_percent`, `cpu_swap_percent`,
    `process_bytes` (resident memory) and `process_threads`. None of it waits for the device.
    Values of the host need `pip install "minitorch-trainer[psutil]"`.

    Args:
        cpu_stats: Log values of the host; None does so on the CPU only.
        filter_keys: Log only these, such as {"cpu_percent"}.

    Raises:
        ModuleNotFoundError: psutil is not installed; when a run starts.
        ArgumentError: A name of filter_keys does not exist.
    """

    order = Order.MEASURE

    def __init__(self, cpu_stats: bool | None = None, filter_keys: Set[str] | None = None) -> None:
        self.cpu_stats = cpu_stats
        self.filter_keys = filter_keys
        self._process: Any = None

    def on_fit_start(self, trainer: Trainer, module: TaskModule) -> None:
        unknown = set(self.filter_keys or ()) - {*_HOST, *_GPU}
        if unknown:
            raise ArgumentError(
                f"DeviceStatsMonitor: filter_keys are among {', '.join((*_HOST, *_GPU))}. "
                f"Got {', '.join(sorted(map(repr, unknown)))}."
            )
        self._process = None
        on_host = trainer.device.type == "cpu" if self.cpu_stats is None else self.cpu_stats
        if on_host:
            with needed("DeviceStatsMonitor", "psutil"):
                import psutil
            self._process = psutil.Process()
            psutil.cpu_percent()  # the first call has nothing to compare with

    def on_train_batch_end(
        self, trainer: Trainer, module: TaskModule, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        every, step = trainer.log_every_n_steps, trainer.global_step
        if not every or step % every or trainer.position.window:
            return
        values = _of_gpu(trainer.device) if trainer.device.type != "cpu" else {}
        if self._process is not None:
            values |= _of_host(self._process)
        for name, value in values.items():
            if self.filter_keys is None or name in self.filter_keys:
                module.log(f"DeviceStatsMonitor/{name}", float(value), on_step=True, on_epoch=False)


_GPU = ("memory_allocated", "memory_reserved", "memory_free")
_HOST = ("cpu_percent", "cpu_vm_percent", "cpu_swap_percent", "process_bytes", "process_threads")


def _of_gpu(device: Any) -> dict[str, float]:
    from minitorch import cuda

    free = cuda.mem_get_info(device)[0]
    numbers = (cuda.memory_allocated(device), cuda.memory_reserved(device), free)
    return dict(zip(_GPU, numbers, strict=True))


def _of_host(process: Any) -> dict[str, float]:
    import psutil

    with process.oneshot():
        own = (process.memory_info().rss, process.num_threads())
    whole = (psutil.cpu_percent(), psutil.virtual_memory().percent, psutil.swap_memory().percent)
    return dict(zip(_HOST, (*whole, *own), strict=True))
