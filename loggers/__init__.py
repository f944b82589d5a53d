"""Loggers: where metrics, hyperparameters, images and graphs of a run are written."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minitorch.loggers.console_logger import ConsoleLogger
    from minitorch.loggers.csv_logger import CSVLogger
    from minitorch.loggers.jsonl_logger import JSONLLogger
    from minitorch.loggers.logger import Logger, LoggerError
    from minitorch.loggers.mlflow_logger import MLFlowLogger
    from minitorch.loggers.tensorboard_logger import TensorBoardLogger
    from minitorch.loggers.wandb_logger import WandbLogger

__all__ = [
    "CSVLogger",
    "ConsoleLogger",
    "JSONLLogger",
    "Logger",
    "LoggerError",
    "MLFlowLogger",
    "TensorBoardLogger",
    "WandbLogger",
]

_HOME = {
    "CSVLogger": ".csv_logger",
    "ConsoleLogger": ".console_logger",
    "JSONLLogger": ".jsonl_logger",
    "Logger": ".logger",
    "LoggerError": ".logger",
    "MLFlowLogger": ".mlflow_logger",
    "TensorBoardLogger": ".tensorboard_logger",
    "WandbLogger": ".wandb_logger",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        hint = f". There are {', '.join(_HOME)}." if name[:1].isupper() else ""
        if name.endswith("Logger"):
            hint += " For another service derive from Logger."
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
