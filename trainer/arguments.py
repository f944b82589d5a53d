"""The arguments of the Trainer: what they mean, which values fit, what replaces unknown ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from minitorch.errors import ArgumentError
from minitorch.trainer.checks import LEVELS, refuse_level
from minitorch.trainer.intervals import has_unit
from minitorch.trainer.profiler import NAMES as PROFILERS

if TYPE_CHECKING:
    from minitorch.callbacks import Callback

PRECISIONS = {
    "32": "32",
    "32-true": "32",
    "64": "64",
    "64-true": "64",
    "16": "16-mixed",
    "16-mixed": "16-mixed",
    "bf16": "bf16-mixed",
    "bf16-mixed": "bf16-mixed",
    "16-true": "16-true",
    "bf16-true": "bf16-true",
}

REPLACED: dict[str, tuple[tuple[Any, ...], str]] = {
    "model_registry": ((None,), "Copy the file of result.best to where models are kept."),
    "num_nodes": ((1,), "Training runs on one device of one machine."),
    "plugins": (
        (None, []),
        "Pass a subclass of a core callback (minitorch.callbacks.core) in callbacks=[...].",
    ),
    "strategy": (("auto", "single_device"), "Training runs on one device."),
    "suggest_integrations": ((True, False), "Leave it out: nothing is advertised."),
}
"""Lightning's arguments without a meaning here: the values that change nothing, and the fix."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The arguments of a Trainer as given; `Trainer` documents them."""

    max_epochs: int | None
    min_epochs: int | None
    max_steps: int
    min_steps: int | None
    max_time: str | timedelta | dict[str, float] | None
    accelerator: str
    devices: str | int | list[int]
    precision: str | int | None
    callbacks: Callback | Iterable[Callback] | None
    logger: Any
    accumulate_grad_batches: int
    gradient_clip_val: float | None
    gradient_clip_algorithm: str | None
    on_out_of_memory: str
    limit_train_batches: int | float | None
    limit_val_batches: int | float | None
    limit_test_batches: int | float | None
    limit_predict_batches: int | float | None
    overfit_batches: int | float
    fast_dev_run: int | bool
    val_check_interval: Any
    check_val_every_n_epoch: int | None
    num_sanity_val_steps: int | None
    log_every_n_steps: int | None
    enable_checkpointing: bool | None
    enable_progress_bar: bool | None
    enable_model_summary: bool | None
    inference_mode: bool
    detect_anomaly: bool
    deterministic: bool | str | None
    default_root_dir: Any
    profiler: Any
    compile: bool
    checks: str
    reload_dataloaders_every_n_epochs: int
    barebones: bool
    enable_autolog_hparams: bool
    benchmark: bool | None
    sync_batchnorm: bool
    use_distributed_sampler: bool
    strategy: str
    num_nodes: int
    plugins: Any
    model_registry: str | None

    @property
    def precision_name(self) -> str:
        """The precision under its full name."""
        return PRECISIONS[str(self.precision or "32")]

    @classmethod
    def names(cls) -> list[str]:
        """Names of all arguments."""
        return [field.name for field in fields(cls)]


def settle(given: dict[str, Any], unknown: dict[str, Any]) -> Settings:
    """The settings of a Trainer, after what can be refused at once.

    Raises:
        ArgumentError: An argument does not exist (names the closest), asks for several devices, or
            contradicts barebones.
    """
    known = Settings.names()
    for name, value in {**unknown, **{k: given[k] for k in REPLACED.keys() & given.keys()}}.items():
        if name in REPLACED:
            neutral, fix = REPLACED[name]
            if not any(value is n or value == n for n in neutral):
                raise ArgumentError(
                    f"Trainer: {name} of Lightning has no meaning here. Got {name}={value!r}. {fix}"
                )
            continue
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]}?" if close else f"Known are {', '.join(known)}."
        raise ArgumentError(f"Trainer: there is no argument {name!r}. {hint}")
    _refuse_devices(given["accelerator"], given["devices"])
    return Settings(**(_bare(given) if given["barebones"] else given))


BARE: dict[str, tuple[Any, Any]] = {
    "enable_checkpointing": (None, False),
    "logger": (None, False),
    "enable_progress_bar": (None, False),
    "enable_model_summary": (None, False),
    "log_every_n_steps": (None, 0),
    "num_sanity_val_steps": (None, 0),
    "fast_dev_run": (False, False),
    "detect_anomaly": (False, False),
    "profiler": (None, None),
    "checks": ("on", "off"),
}
"""What barebones turns off: for each argument its default, and its value then."""


def _bare(given: dict[str, Any]) -> dict[str, Any]:
    for name, (default, value) in BARE.items():
        if given[name] != default and given[name] != value:
            raise ArgumentError(
                f"Trainer: barebones=True turns {name} off. Got {name}={given[name]!r}. "
                "Leave one of them out."
            )
    return {**given, **{name: value for name, (_, value) in BARE.items()}}


def _refuse_devices(accelerator: str, devices: Any) -> None:
    """Raises for more than one device: the one place that several would pass."""
    one = isinstance(devices, list | tuple) and len(devices) == 1
    if not one and devices not in ("auto", 1, "1"):
        _refuse("devices", devices, "1 or [index]", "Training runs on one device.")
    if one and accelerator == "cpu" and devices not in ([0], (0,)):
        _refuse("devices", devices, '1 with accelerator="cpu"', "A list names a GPU.")


def check(settings: Settings) -> None:
    """Validates all arguments; the Trainer calls it when a run starts.

    Raises:
        ArgumentError: States the rule, the value and the fix.
    """
    s = settings
    _flags(s)
    _counts(s)
    _shares(s)
    if str(s.precision or "32") not in PRECISIONS:
        _refuse(
            "precision",
            s.precision,
            'one of "32", "64", "16-mixed", "bf16-mixed", "16-true", "bf16-true"',
            "The mixed ones keep weights in float32; the true ones round them after each update.",
        )
    if s.gradient_clip_algorithm not in (None, "norm", "value"):
        _refuse("gradient_clip_algorithm", s.gradient_clip_algorithm, '"norm" or "value"')
    if s.gradient_clip_val is not None and not _number(s.gradient_clip_val, 0, exclusive=True):
        _refuse("gradient_clip_val", s.gradient_clip_val, "a number > 0", "Leave it out for none.")
    if s.on_out_of_memory not in ("raise", "split"):
        _refuse("on_out_of_memory", s.on_out_of_memory, '"raise" or "split"')
    if s.accelerator not in ("auto", "cpu", "gpu", "cuda"):
        _refuse("accelerator", s.accelerator, '"auto", "cpu", "gpu" or "cuda"')
    if s.deterministic not in (None, True, False, "warn"):
        _refuse("deterministic", s.deterministic, 'True, False or "warn"')
    if s.checks not in LEVELS:
        refuse_level(s.checks)
    known = s.profiler in PROFILERS if isinstance(s.profiler, str) else hasattr(s.profiler, "timed")
    if s.profiler is not None and not known:
        _refuse("profiler", s.profiler, f"one of {', '.join(PROFILERS)}, or a Profiler")


def _flags(s: Settings) -> None:
    for field in fields(s):
        value = getattr(s, field.name)
        if field.type in ("bool", "bool | None") and type(value) is not bool:
            if value is not None or field.type == "bool":
                _refuse(field.name, value, "True or False")


def _counts(s: Settings) -> None:
    for name, least, endless in (
        ("max_epochs", 0, True),
        ("min_epochs", 0, False),
        ("max_steps", 0, True),
        ("min_steps", 0, False),
        ("accumulate_grad_batches", 1, False),
        ("check_val_every_n_epoch", 1, False),
        ("num_sanity_val_steps", 0, True),
        ("log_every_n_steps", 0, False),
        ("reload_dataloaders_every_n_epochs", 0, False),
    ):
        value = getattr(s, name)
        if value is None and name not in ("max_steps", "accumulate_grad_batches"):
            continue
        if type(value) is not int or (value < least and not (endless and value == -1)):
            allowed = f"an integer ≥ {least}" + (" or -1 for no limit" if endless else "")
            _refuse(name, value, allowed)
    for low, high in (("min_epochs", "max_epochs"), ("min_steps", "max_steps")):
        least, most = getattr(s, low), getattr(s, high)
        if least is not None and most not in (None, -1) and least > most:
            raise ArgumentError(f"Trainer: {low} must be ≤ {high}. Got {least} > {most}.")


def _shares(s: Settings) -> None:
    for name in (
        "limit_train_batches",
        "limit_val_batches",
        "limit_test_batches",
        "limit_predict_batches",
        "overfit_batches",
        "val_check_interval",
    ):
        value = getattr(s, name)
        if value is None or (name == "val_check_interval" and has_unit(value)):
            continue
        is_count = type(value) is int and value >= 0
        is_share = isinstance(value, float) and 0.0 <= value <= 1.0
        zero_ok = name != "val_check_interval"
        if not (is_count or is_share) or (value == 0 and not zero_ok):
            _refuse(name, value, "a share in [0.0, 1.0] (float) or a number of batches (int)")
    if has_unit(s.val_check_interval) and s.check_val_every_n_epoch not in (None, 1):
        raise ArgumentError(
            "Trainer: val_check_interval with a unit says all about when to validate. Got "
            f"{s.val_check_interval!r} and check_val_every_n_epoch={s.check_val_every_n_epoch!r}. "
            "Leave the latter out."
        )
    if not isinstance(s.fast_dev_run, bool | int) or s.fast_dev_run < 0:
        _refuse("fast_dev_run", s.fast_dev_run, "True, False or a number of batches")
    if s.check_val_every_n_epoch is None and isinstance(s.val_check_interval, float | None):
        raise ArgumentError(
            "Trainer: check_val_every_n_epoch=None counts batches across epochs, so "
            f"val_check_interval must be an integer. Got {s.val_check_interval!r}. "
            "Pass a number of batches."
        )


def _number(value: Any, least: float, *, exclusive: bool = False) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return value > least if exclusive else value >= least


def _refuse(name: str, value: Any, rule: str, fix: str = "") -> None:
    raise ArgumentError(f"Trainer: {name} must be {rule}. Got {value!r}.{' ' + fix if fix else ''}")
