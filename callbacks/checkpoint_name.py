"""Names of checkpoint files from templates such as "{epoch}-{val/loss:.3f}"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Formatter

from minitorch.errors import ArgumentError

COUNTERS = ("epoch", "step")
"""Names that every template may use besides logged metrics."""


class CheckpointName:
    """A template for file names.

    `{name}` or `{name:format}` stands for the value of a logged metric, `{epoch}` and `{step}`
    for the number of the epoch and the updates. Characters of a name that files or folders must
    not have, such as "/", become "_".

    Args:
        template: The text.
        insert_names: Write "name=value" instead of "value".

    Raises:
        ArgumentError: The template cannot be read.
    """

    def __init__(self, template: str, *, insert_names: bool) -> None:
        self.template = template
        self._insert_names = insert_names
        try:
            self._parts = list(Formatter().parse(template))
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                'ModelCheckpoint: filename must be a template such as "{epoch}-{val/loss:.3f}". '
                f"Got {template!r} ({error})."
            ) from error
        if any(name == "" for _, name, _, _ in self._parts):
            raise ArgumentError(
                "ModelCheckpoint: each {} of filename must hold a name. "
                f"Got {template!r}. Write {{epoch}}, {{step}} or the name of a metric."
            )

    @property
    def metrics(self) -> list[str]:
        """Names of the metrics that it needs."""
        names = [name for _, name, _, _ in self._parts if name is not None]
        return [name for name in dict.fromkeys(names) if name not in COUNTERS]

    def render(self, values: Mapping[str, float]) -> str:
        """The file's name, without its ending.

        Args:
            values: All metrics that it needs, "epoch" and "step".

        Raises:
            ArgumentError: A format does not fit its value.
        """
        text = ""
        for literal, name, spec, _ in self._parts:
            text += literal
            if name is None:
                continue
            label = re.sub(r'[\\/:*?"<>|\s]', "_", name)
            if self._insert_names and not text.endswith(f"{label}="):
                text += f"{label}="
            try:
                text += format(values[name], spec or "")
            except ValueError as error:
                raise ArgumentError(
                    f"ModelCheckpoint: the format of {{{name}:{spec}}} in filename does not fit "
                    f"{values[name]!r} ({error}). Write for example {{{name}:.3f}}."
                ) from error
        return text
