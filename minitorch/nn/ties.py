"""Declared ties: two paths of a tree that hold one parameter, whatever happens to the tree.

A tie is kept where the tree is walked, which every copy, move, load and optimizer does: a copy of
the shared parameter at the tied path is put back, another value there is an error.
"""

from __future__ import annotations

from typing import Any, Self

from .. import backend
from ..errors import ArgumentError, describe
from ..tensor import Parameter
from . import tree

TIES = "_ties"


class TieMethods(tree.TreeNode):
    """What a module offers to share parameters."""

    def tie(self, a: str, b: str) -> Self:
        """Declares that the parameter at path `a` is the one at path `b`, and makes it so.

        The tie survives deep copies of the whole or of parts, moves, casts and loads. To end it,
        call `untie(a)`.

        Args:
            a: Path such as "head.weight"; it gets the parameter of `b`.
            b: Path of the parameter that stays, such as "embedding.weight".

        Returns:
            The module.

        Raises:
            ArgumentError: A path does not lead to a parameter, or shapes differ.

        >>> model = mt.nn.ModuleDict({"embed": mt.nn.Embedding(9, 4), "head": mt.nn.Linear(4, 9)})
        >>> _ = model.tie("head.weight", "embed.weight")
        >>> model["head"].weight is model["embed"].weight
        True
        """
        own, kept = _at(self, a), _at(self, b)
        if a == b or own.shape != kept.shape:
            raise ArgumentError(
                f"{type(self).__name__}.tie: two paths with parameters of one shape are needed. "
                f"Got '{a}' {describe(own)} and '{b}' {describe(kept)}."
            )
        ties = [pair for pair in vars(self).get(TIES, ()) if pair[0] != a]
        vars(self)[TIES] = [*ties, (a, b)]
        _put(self, a, kept)
        return self

    def untie(self, a: str) -> Self:
        """Ends the tie of path `a`, which gets a parameter of its own with the same values.

        Raises:
            ArgumentError: It is not tied.
        """
        ties = vars(self).get(TIES, ())
        if a not in dict(ties):
            raise ArgumentError(
                f"{type(self).__name__}.untie: '{a}' is not tied. Got ties of "
                f"{', '.join(dict(ties)) or 'nothing'}."
            )
        vars(self)[TIES] = [pair for pair in ties if pair[0] != a]
        held = _at(self, a)
        _put(self, a, Parameter(held.detach().clone(), requires_grad=held.requires_grad))
        return self


def keep(module: Any, ties: list[tuple[str, str]]) -> None:
    """Puts the shared parameter back where a copy of it has taken its place.

    Raises:
        ArgumentError: What took its place has other values, or is no parameter.
    """
    for a, b in ties:
        own, kept = _at(module, a), _at(module, b)
        if own is kept:
            continue
        if own.shape != kept.shape or not _same(own, kept):
            raise ArgumentError(
                f"{type(module).__name__}: a declared tie holds one parameter. Got other values at "
                f"'{a}' {describe(own)} than at '{b}' {describe(kept)}, which it is tied to. "
                f"Assign to '{b}', or end the tie first: untie('{a}')."
            )
        _put(module, a, kept)


def _same(a: Parameter, b: Parameter) -> bool:
    if a.device != b.device or a.dtype != b.dtype:
        return False
    return bool(backend.to_host((a._array == b._array).all()))


def _at(module: Any, path: str) -> Parameter:
    holder, key = tree.locate(module, path)
    value = vars(holder).get(key) if isinstance(holder, tree.TreeNode) else holder[key]
    if not isinstance(value, Parameter):
        raise ArgumentError(
            f"{type(module).__name__}: a tie joins paths of parameters. Got '{path}', which is "
            f"{'nothing' if value is None else type(value).__name__}. named_parameters() lists "
            "the paths."
        )
    return value


def _put(module: Any, path: str, value: Parameter) -> None:
    holder, key = tree.locate(module, path)
    if isinstance(holder, tree.TreeNode):
        setattr(holder, key, value)
    else:
        holder[key] = value


def settle(module: Any, found: dict[str, Any], missing: list[str], errors: list[str]) -> None:
    """Lets a file name a tied parameter once; twice only with the same values.

    Args:
        module: What is loaded.
        found: The values of a file by name.
        missing: Names that the file lacks; tied ones that it has under another name are taken out.
        errors: Gets a line for each tie that the file breaks.
    """
    for path, part, _ in tree.walk(module, "", True, set()):
        for pair in vars(part).get(TIES, ()):
            a, b = (tree.join(path, name) for name in pair)
            if a in found and b in found:
                own, kept = found[a], found[b]
                if own is not kept and (own.shape != kept.shape or not _same(own, kept)):
                    errors.append(
                        f"'{a}' and '{b}' are tied, and the file has two values for them: load one "
                        f"of them, or end the tie: untie('{a}')."
                    )
            elif a in found or b in found:
                missing[:] = [name for name in missing if name not in (a, b)]
