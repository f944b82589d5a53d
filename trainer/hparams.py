"""Hyper-parameters: collected from the constructor, readable as attributes, saved with weights."""

from __future__ import annotations

import ast
import copy
import csv
import dataclasses
import difflib
import inspect
import json
import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from types import FrameType
from typing import Any, TypeVar

from minitorch.errors import ArgumentError, CheckpointError
from minitorch.ops.recording import in_recordings

Built = TypeVar("Built")


class HParams(MutableMapping[str, Any]):
    """A dict whose entries are attributes as well; methods of dicts keep their names."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        object.__setattr__(self, "_values", dict(values or {}))

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value

    def __delitem__(self, name: str) -> None:
        del self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __getattr__(self, name: str) -> Any:
        if name == "_values" or name.startswith("__"):
            raise AttributeError(name)
        if name in self._values:
            return self._values[name]
        close = difflib.get_close_matches(name, list(self._values), n=1)
        hint = f"Did you mean {close[0]}?" if close else "save_hyperparameters() stores them."
        raise AttributeError(
            f"hparams: there is no {name!r}. Got {', '.join(self._values) or 'none'}. {hint}"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        self._values[name] = value

    def __delattr__(self, name: str) -> None:
        del self._values[name]

    def __reduce__(self) -> Any:
        return HParams, (self._values,)

    def __repr__(self) -> str:
        return f"HParams({self._values!r})"


class Kept:
    """What `save_hyperparameters` keeps.

    Attributes:
        hparams: The values by name.
        initial: As they were when they were saved.
        hparams_name: The constructor argument that holds all of them, if there is one.
        log_hparams: Whether the loggers get them.
    """

    def __init__(self) -> None:
        self.hparams = HParams()
        self.initial = HParams()
        self.hparams_name: str | None = None
        self.log_hparams = True


class HyperParameters:
    """Constructor arguments that are kept, logged and saved, for modules and data modules."""

    _kept: Kept

    def save_hyperparameters(
        self,
        *args: Any,
        ignore: Iterable[str] | str | None = None,
        frame: Any = None,
        logger: bool = True,
    ) -> None:
        """Keeps constructor arguments as `self.hparams`, in checkpoints and in the loggers.

        Args:
            args: Names of arguments (default: all), or one dict, dataclass or namespace.
            ignore: Names to leave out.
            frame: Frame of the constructor; default: the caller's.
            logger: Send them to the loggers at the start of a fit.
        """
        if frame is None:
            current = inspect.currentframe()
            frame = current.f_back if current is not None else None
        values, holder = collect(self, args, ignore, frame)
        kept = self._kept
        kept.hparams.update(values)
        kept.initial = HParams(copy.deepcopy(dict(kept.hparams)))
        kept.hparams_name = holder
        kept.log_hparams = logger

    @property
    @in_recordings()
    def hparams(self) -> HParams:
        """What `save_hyperparameters` kept, by key or attribute."""
        return self._kept.hparams

    @property
    def hparams_initial(self) -> HParams:
        """A copy of `hparams` as they were when they were saved."""
        return HParams(copy.deepcopy(dict(self._kept.initial)))


def read_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The hyper-parameters in a YAML, JSON or CSV file (`key,value` lines).

    Raises:
        CheckpointError: The file is missing, of another kind, or holds no names with values.
    """
    name = os.fspath(path)
    kind = os.path.splitext(name)[1].lower()
    if not os.path.exists(name):
        raise CheckpointError(f"hparams_file: the file must exist. Got {name}. Check the path.")
    with open(name, encoding="utf-8", newline="") as file:
        if kind in (".yaml", ".yml"):
            found = _yaml(file)
        elif kind == ".json":
            found = json.load(file)
        elif kind == ".csv":
            rows = [row for row in csv.reader(file) if row]
            found = {key: _literal(value) for key, value in rows if (key, value) != _CSV_HEAD}
        else:
            raise CheckpointError(
                f"hparams_file: it is a .yaml, .json or .csv file. Got {name}. Convert it."
            )
    if not isinstance(found, dict):
        raise CheckpointError(
            f"hparams_file: it holds names with values. Got {type(found).__name__} in {name}."
        )
    return found


_CSV_HEAD = ("key", "value")


def _yaml(file: Any) -> Any:
    try:
        import yaml
    except ImportError as error:
        raise ImportError(
            "hparams_file: reading YAML needs PyYAML. Install minitorch-trainer[cli], or use JSON."
        ) from error
    return yaml.safe_load(file)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def rebuilt(
    cls: type[Built],
    saved: Mapping[str, Any],
    holder: str | None,
    file: str | os.PathLike[str] | None,
    overrides: Mapping[str, Any],
) -> Built:
    """An object of `cls` from saved hyper-parameters.

    Args:
        cls: The class.
        saved: Hyper-parameters by name.
        holder: The constructor argument that takes all of them as one object, if there is one.
        file: File with hyper-parameters in place of `saved`.
        overrides: Constructor arguments that win.

    Raises:
        CheckpointError: The constructor misses arguments.
    """
    if file is not None:
        saved = read_file(file)
    values = {holder: HParams(saved)} if holder else saved
    arguments = {**_accepted(cls, values), **overrides}
    try:
        return cls(**arguments)
    except TypeError as error:
        raise CheckpointError(
            f"load_from_checkpoint: {cls.__name__} is built from the saved hyper-parameters "
            f"({', '.join(saved) or 'none'}) and failed: {error}. Pass what is missing as "
            "keyword arguments, or call save_hyperparameters() in __init__."
        ) from error


def collect(
    module: Any, args: tuple[Any, ...], ignore: Iterable[str] | str | None, frame: FrameType | None
) -> tuple[dict[str, Any], str | None]:
    """What `save_hyperparameters(*args)` means.

    Args:
        module: The module that is being constructed.
        args: Names of constructor arguments, or one dict, dataclass or namespace.
        ignore: Names to leave out.
        frame: Frame of the constructor that called.

    Returns:
        The hyper-parameters, and the name of the constructor argument that holds all of them if
        they were given as one object.

    Raises:
        ArgumentError: A name is no constructor argument, or the object has no named values.
    """
    skip = {ignore} if isinstance(ignore, str) else set(ignore or ())
    found = _constructor_arguments(module, frame)
    names = [arg for arg in args if isinstance(arg, str)]
    if len(names) != len(args):
        if len(args) != 1:
            raise ArgumentError(
                "save_hyperparameters: give names of constructor arguments, or one dict, dataclass "
                f"or namespace. Got {len(args)} arguments. Merge them first."
            )
        holder = next((name for name, value in found.items() if value is args[0]), None)
        values = _as_dict(args[0])
        return {k: v for k, v in values.items() if k not in skip}, holder
    for name in names:
        if name not in found:
            close = difflib.get_close_matches(name, list(found), n=1)
            hint = f"Did you mean {close[0]!r}?" if close else "Check the spelling."
            raise ArgumentError(
                f"save_hyperparameters: names must be arguments of __init__. Got {name!r}; "
                f"there are {', '.join(found)}. {hint}"
            )
    chosen = names or list(found)
    return {name: found[name] for name in chosen if name not in skip}, None


def _as_dict(value: Any) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if hasattr(value, "__dict__"):
        return dict(vars(value))
    raise ArgumentError(
        "save_hyperparameters: hyper-parameters have names: give a dict, a dataclass or a "
        f"namespace. Got {type(value).__name__}."
    )


def _constructor_arguments(module: Any, frame: FrameType | None) -> dict[str, Any]:
    """Arguments of all constructors that are running for this module, outermost last."""
    levels: list[dict[str, Any]] = []
    while frame is not None and frame.f_code.co_name == "__init__":
        code, values = frame.f_code, frame.f_locals
        last = code.co_argcount + code.co_kwonlyargcount
        if not last or values.get(code.co_varnames[0]) is not module:
            break
        level = {name: values[name] for name in code.co_varnames[1:last] if name in values}
        if code.co_flags & inspect.CO_VARKEYWORDS:
            rest = last + bool(code.co_flags & inspect.CO_VARARGS)
            level.update(values.get(code.co_varnames[rest], {}))
        levels.append(level)
        frame = frame.f_back
    found: dict[str, Any] = {}
    for level in levels:
        found.update(level)
    return found


def _accepted(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `values` that the constructor of `cls` takes."""
    parameters = inspect.signature(cls).parameters
    if any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        return dict(values)
    return {name: value for name, value in values.items() if name in parameters}
