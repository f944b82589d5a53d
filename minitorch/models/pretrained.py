"""What the models share: a configuration, and weights in folders with public names."""

import dataclasses
import difflib
import os
import re
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from ..errors import ArgumentError, CheckpointError
from ..io.folder import load_config, load_folder, save_folder
from ..io.tensor_file import with_ties
from ..nn.module import Module
from ..tensor import Tensor

_OLD_ENDINGS = ((".gamma", ".weight"), (".beta", ".bias"))


class PretrainedModel(Module):
    """A model that is made from a configuration and reads and writes folders of weights.

    Attributes:
        config: the frozen dataclass it was made from.
        config_class: the class of it.
        model_type: what `config.json` calls the architecture.
        base_prefix: the name of the part without a head; files with and without it are read.
        unused_names: patterns of names in published files that carry no weights of this class.
    """

    config_class: ClassVar[type]
    model_type: ClassVar[str]
    base_prefix: ClassVar[str] = ""
    unused_names: ClassVar[tuple[str, ...]] = ()

    config: Any

    def __init__(self, config: Any) -> None:
        super().__init__()
        if not isinstance(config, self.config_class):
            raise ArgumentError(
                f"{type(self).__name__}: config must be a {self.config_class.__name__}. Got "
                f"{type(config).__name__}. Use {self.config_class.__name__}(...)."
            )
        self.config = config

    @classmethod
    def from_pretrained(
        cls, folder: str | os.PathLike[str], *, strict: bool = True, **overrides: Any
    ) -> Self:
        """Make a model from a folder with `config.json` and weights; it is in eval mode.

        Args:
            folder: as Hugging Face or `save_pretrained` writes it.
            strict: raise where names are missing or unexpected; False warns and leaves the missing
                ones as initialised.
            overrides: fields of the configuration that take the place of those in the file.

        Raises:
            CheckpointError: the folder is of another architecture, or its weights do not fit.
        """
        model = cls(config_from(cls.config_class, cls.model_type, load_config(folder), overrides))
        model.load_published(load_folder(folder), strict=strict)
        return model.eval()

    def save_pretrained(
        self, folder: str | os.PathLike[str], *, max_shard_bytes: int = 5_000_000_000
    ) -> None:
        """Write `config.json` and the weights, as `from_pretrained` and Hugging Face read them."""
        fields = dataclasses.asdict(self.config)
        kind = {"architectures": [type(self).__name__], "model_type": self.model_type}
        save_folder(folder, self.state_dict(), kind | fields, max_shard_bytes=max_shard_bytes)

    def load_published(self, state: Mapping[str, Tensor], *, strict: bool = True) -> None:
        """Load weights by their public names, with or without the prefix of the base model.

        Args:
            state: tensors by name, for example from `minitorch.load` or `load_file`.
            strict: as in `from_pretrained`.

        Raises:
            CheckpointError: names are missing or unexpected (with the nearest name), or shapes do
                not fit.
        """
        own = self.state_dict(keep_vars=True)
        state = _renamed(state, self.base_prefix, own)
        unused = [re.compile(pattern) for pattern in self.unused_names]
        state = {
            name: tensor
            for name, tensor in state.items()
            if name in own or not any(pattern.search(name) for pattern in unused)
        }
        state = with_ties(self, state)
        missing = [name for name in own if name not in state and not _is_counter(name)]
        unexpected = [name for name in state if name not in own]
        if missing or unexpected:
            text = _mismatch(type(self).__name__, len(own), missing, unexpected)
            if strict:
                raise CheckpointError(text)
            warnings.warn(text, stacklevel=2)
        self.load_state_dict({n: t for n, t in state.items() if n in own}, strict=False)


def config_from(
    kind: type, model_type: str, given: Mapping[str, Any], overrides: Mapping[str, Any]
) -> Any:
    """A configuration from the fields of a `config.json` that the dataclass `kind` has.

    Raises:
        CheckpointError: the file is of another architecture.
        ArgumentError: an override names no field.
    """
    found = given.get("model_type", model_type)
    if found != model_type:
        raise CheckpointError(
            f"from_pretrained: config.json says model_type {found!r}; {kind.__name__} is for "
            f"{model_type!r}. Use the class of that architecture."
        )
    names = [field.name for field in dataclasses.fields(kind)]
    for name in overrides:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            raise ArgumentError(
                f"{kind.__name__} has no field {name!r}. "
                + (f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(names)}.")
            )
    fields = {name: given[name] for name in names if name in given} | dict(overrides)
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in fields.items()})


def _renamed(state: Mapping[str, Tensor], prefix: str, own: Mapping[str, Any]) -> dict[str, Tensor]:
    """`state` under the names of the model, as far as prefixes and old endings decide."""
    plain = {}
    for name, tensor in state.items():
        for old, new in _OLD_ENDINGS:
            if name not in own and name.endswith(old):
                name = name.removesuffix(old) + new
        plain[name] = tensor
    if not prefix:
        return plain
    dot = f"{prefix}."
    shorter = {name.removeprefix(dot): tensor for name, tensor in plain.items()}
    longer = {n if n in own or dot + n not in own else dot + n: t for n, t in plain.items()}
    return max((plain, shorter, longer), key=lambda names: len(own.keys() & names.keys()))


def _is_counter(name: str) -> bool:
    return name.endswith("num_batches_tracked")  # absent in files from before PyTorch 0.4.1


def _mismatch(owner: str, total: int, missing: list[str], unexpected: list[str]) -> str:
    lines = [
        f"{owner}: the names of the weights must be those of the model. "
        f"{total - len(missing)} of {total} are there."
    ]
    for what, names, others in (
        ("missing", missing, unexpected),
        ("unexpected", unexpected, missing),
    ):
        if names:
            lines.append(
                f"  {len(names)} {what}: {', '.join(names[:10])}" + " …" * (len(names) > 10)
            )
            near = difflib.get_close_matches(names[0], others, n=1, cutoff=0.8)
            if near and what == "unexpected":
                lines.append(f"  Did you mean {near[0]!r} by {names[0]!r}?")
    lines.append("  Build the model with the sizes of the file, or use strict=False.")
    return "\n".join(lines)
