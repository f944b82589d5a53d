"""Where a name of Lightning stands here, for who looks for it in `minitorch.trainer`."""

from __future__ import annotations

from minitorch.lazy import missing

ELSEWHERE = {
    "LightningArgumentParser": "It is CLIParser of minitorch.trainer.cli.",
    "LightningCLI": "It is in minitorch.trainer.cli, also as TrainerCLI.",
    "SaveConfigCallback": "It is in minitorch.trainer.cli.",
    "TrainerCLI": "It is in minitorch.trainer.cli.",
    "PassThroughProfiler": "Leave the profiler out.",
    "PyTorchProfiler": 'It is OpsProfiler, or Trainer(profiler="ops").',
    "plugins": "A subclass of a core callback (minitorch.callbacks.core) takes a plugin's place.",
    "strategies": "There is one device; groups of processes are in minitorch.distributed.",
    "accelerators": 'Pass Trainer(accelerator="gpu").',
    "core": "LightningModule and LightningDataModule are in minitorch.trainer itself.",
    "overrides": "trainer.overrides(name) tells which hooks are the user's.",
    "utilities": "seed_everything, CombinedLoader and freeze are in minitorch.trainer itself; "
    "models are summed up by minitorch.callbacks.summarize.",
    "LightningTrainer": "It is Trainer.",
}
"""Names and packages of Lightning that are not in `minitorch.trainer`, with where to look."""


def absent(package: str, name: str, known: list[str]) -> str:
    """The text of an AttributeError: where the name is, or which one was meant.

    Args:
        package: `__name__` of the package.
        name: What was looked for.
        known: The names of the package.
    """
    text = f"module {package!r} has no attribute {name!r}"
    if name in ELSEWHERE:
        return f"{text}. {ELSEWHERE[name]}"
    if name.startswith("_"):
        return text
    from minitorch import callbacks, loggers

    for other in (callbacks, loggers):
        if name in dir(other):
            return f"{text}. It is in {other.__name__}."
    return missing(package, name, known)
