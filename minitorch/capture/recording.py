"""A recording: the programs made of one eager run, and when they may stand for another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import random
from ..autograd.mode import state
from ..ops.cross_entropy import divisor
from ..ops.primitive import Tensor, edge_of, input_edge, version_of, wrap
from .compare import alike
from .fusion import fused, in_parts
from .gradient import RecordedPass, StandingPass, leaves_of, seeds_like
from .program import Retreat, backward_of, forward_of, makes, needed, reads
from .recompute import recomputed
from .region import Held, hang, quietly
from .state import State
from .tape import Break, Call, Ref, Tape

_PLAIN = (bool, int, float, complex, str, bytes, type(None))
_ARRAYS = (np.ndarray, np.generic)
_MOST = 32  # results with gradients, each of which has a program of its own


class Recording:
    """What a function did with its arguments, to be done again.

    Args:
        tape: The finished tape of its run.
        snapshot: The Python state before the run, which did not change in it.
        inputs: The tensors among the arguments.
        output: What it returned.
        label: Its name, for tracebacks.
        given: The containers among the arguments.

    Attributes:
        replays: How often it was replayed or proved.
        is_matched: Calls like its own can be recognised quickly, as far as is known.

    Raises:
        Break: The run cannot be repeated.
    """

    def __init__(
        self,
        tape: Tape,
        snapshot: State,
        inputs: Sequence[Any],
        output: Any,
        label: str,
        given: State,
    ) -> None:
        self.state = snapshot
        self._given = given
        self.replays = 0
        self.is_matched = True
        self.draws = any(call.kind == "random" for call in tape.calls)
        self._label = label
        self._tensors = self._known_externals(tape, snapshot, inputs)
        self._checks = [(t, t._array.shape, t._array.dtype, t._rg) for t in self._tensors.values()]
        self._written = [
            t
            for t in self._tensors.values()
            if any(np.may_share_memory(t._array, array) for array in tape.written)
        ]
        self._forwards = [
            call for call in in_parts(tape, tape.calls) if call.kind not in ("late", "log")
        ]
        self._late = [call for call in tape.calls if call.kind in ("late", "log")]
        self._at_once = tape.reread
        if tape.reread:
            self._in_order(tape)
        self.outputs: list[Any] = []
        self._slots: list[int] = []
        self._spec = self._structure(output, tape, inputs)
        self._edges, self._backwards, every = self._differentiate(tape, inputs)
        count = _mean_of(tape, self.outputs)
        self._weighted = isinstance(count, Ref)
        self._count = None if self._weighted else count
        if self._weighted:
            self._slots.append(count.slot)
        externals = tape.externals
        saved = sorted(every)
        for_late = {slot for call in self._late for slot in reads(call)}
        keep = {*self._slots, *saved, *for_late}
        self._forwards = fused(tape, needed(self._forwards, keep)[0], keep)
        self.forward, self._effects = forward_of(
            tape, self._forwards, self._late, self._slots, saved, externals, self._tensors, label
        )
        self._programs = self._compile_backward(tape, saved)
        self._exposed = self._outputs_read(tape)
        known = {e.ref.slot: self._tensors[e.ref.slot] for e in externals}
        self._guarded = [known[slot] for slot in saved if slot in known]
        self._guarded_inputs = [i for i, ref in enumerate(tape.inputs) if ref.slot in saved]
        self._externals = list(known.values())
        self._look()
        lone = all(kind == "old" for kind, _ in self._edges)
        self._fixed = tuple([t for _, t in self._edges]) if lone else None
        self._differentiable = [i for i, t in enumerate(self.outputs) if t._rg]
        del self.outputs, self._given

    # ---- making ----------------------------------------------------------------------------------

    def _known_externals(
        self, tape: Tape, snapshot: State, inputs: Sequence[Any]
    ) -> dict[int, Any]:
        found = {}
        for t in inputs:
            if id(t._array) in snapshot.tensors:
                raise Break("an argument is a tensor of the module, too")
        for external in tape.externals:
            tensor = snapshot.tensors.get(id(external.array))
            if tensor is None:
                raise Break(*external.reason)
            if tensor._view is not None or tensor._node is not None:
                text, line = external.reason
                raise Break(f"{text}: it is a result of operations", line)
            found[external.ref.slot] = tensor
        return found

    def _in_order(self, tape: Tape) -> None:
        """Changes that are read later happen where they did; what fails after takes them back."""
        for call in tape.calls:
            if call.kind == "late":
                call.kind = "write"
        self._forwards = [call for call in tape.calls if call.kind != "log"]
        self._late = [call for call in tape.calls if call.kind == "log"]

    def _structure(self, value: Any, tape: Tape, inputs: Sequence[Any]) -> Any:
        """The output with ("out", i), ("in", i) or ("old", tensor) in place of tensors."""
        if isinstance(value, Tensor):
            for i, t in enumerate(inputs):
                if value is t:
                    return ("in", i)
            ref = tape.known(value._array)
            if ref is None:
                raise Break("the result is a tensor that nothing recorded has made")
            if ref.slot in self._tensors:
                if value is self._tensors[ref.slot]:
                    return ("old", value)
                raise Break("the result shares the memory of a tensor of the module")
            for i, t in enumerate(self.outputs):
                if value is t:
                    return ("out", i)
            self._check_output(value, tape)
            self.outputs.append(value)
            self._slots.append(ref.slot)
            return ("out", len(self.outputs) - 1)
        if isinstance(value, _PLAIN):
            return ("plain", value)
        if type(value) in (list, dict) and (self._given.holds(value) or self.state.holds(value)):
            raise Break(f"the result is a {type(value).__name__} from before")
        if type(value) in (tuple, list):
            return (type(value), [self._structure(x, tape, inputs) for x in value])
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            make: Any = type(value)._make  # type: ignore[attr-defined]
            return (make, [self._structure(x, tape, inputs) for x in value])
        if type(value) is dict:
            return (dict, {k: self._structure(x, tape, inputs) for k, x in value.items()})
        raise Break(f"the result holds an object of {type(value).__name__}")

    def _check_output(self, value: Any, tape: Tape) -> None:
        array = value._array
        others = [t._array for t in self.outputs]
        others += [tape.array_of(ref) for ref in tape.inputs]
        others += [external.array for external in tape.externals]
        if array.size and any(np.may_share_memory(array, other) for other in others):
            raise Break("the result is a view of an argument, a parameter or another result")
        for slot in tape.constants:  # each result is the caller's own, who may change it
            if np.may_share_memory(array, tape.array_of(Ref(slot))):
                tape.fresh.add(slot)
        if array.dtype.kind == "c":
            raise Break("complex numbers take part")

    def _differentiate(self, tape: Tape, inputs: Sequence[Any]) -> tuple[Any, Any, set[int]]:
        """Records backward for each output alone, and for all of them."""
        roots = [t._node for t in self.outputs if t._rg]
        if not roots:
            return [], {}, set()
        if any(root is None for root in roots):
            raise Break("the result is a leaf that requires gradients")
        stops = {t._node for t in inputs if t._node is not None}
        old = {id(t) for t in (*self._tensors.values(), *inputs)}
        edges: list[Any] = []
        for leaf in leaves_of(roots, stops):
            if id(leaf) not in old:
                raise Break("a leaf that requires gradients was made in the step")
            edges.append(leaf)
        places = {id(t): i for i, t in enumerate(inputs)}
        edges = [("in", places[id(e)]) if id(e) in places else ("old", e) for e in edges]
        edges += [("in", i) for i, t in enumerate(inputs) if t._node is not None]
        real = [inputs[e[1]] if e[0] == "in" else e[1] for e in edges]
        targets = [edge_of(t) for t in real]
        arrays = [t._array for t in self.outputs if t._rg]
        seeds = seeds_like(arrays)
        seed_refs = [tape.bind(seed) for seed in seeds]
        forward_slots = seed_refs[0].slot
        kinds = [tuple(range(len(roots)))]
        if len(roots) > _MOST:
            raise Break(f"there are more than {_MOST} results with gradients")
        if len(roots) > 1:
            kinds += [(i,) for i in range(len(roots))]
        backwards: dict[tuple[int, ...], Any] = {}
        saved: set[int] = set()
        for kind in kinds:
            tape.calls = []
            run = RecordedPass(tape, set(targets) - {None}, [roots[i] for i in kind])
            found = run.gradients([roots[i] for i in kind], [seeds[i] for i in kind])
            gradients = []
            for target in targets:
                g = found.get(target)
                ref = None if g is None else tape.known(g)
                if g is not None and ref is None:
                    raise Break("a gradient that nothing recorded has made reaches a leaf")
                gradients.append((None if ref is None else ref.slot, target in run.fresh))
            wanted = {slot for slot, _ in gradients if slot is not None}
            calls = self._fused_backward(tape, wanted, forward_slots)
            backwards[kind] = (calls, [seed_refs[i].slot for i in kind], gradients)
            made = {slot for call in calls for slot in makes(call)}
            every = {slot for call in calls for slot in reads(call)} | wanted
            saved |= {slot for slot in every - made if slot < forward_slots}
        plain = set(tape.constants) - tape.fresh
        return edges, backwards, saved - plain

    def _fused_backward(self, tape: Tape, wanted: set[int], forward_slots: int) -> list[Call]:
        """The backward pass on the tape with kernels, which compute again what is cheap to."""
        plain = needed(tape.calls, wanted)[0]
        saved = {slot for call in plain for slot in reads(call)} | wanted
        exposed = {*self._slots, *wanted, *(s for call in self._late for s in reads(call))}
        again = recomputed(tape, self._forwards, {s for s in saved if s < forward_slots}, exposed)
        calls = fused(tape, needed([*again, *plain], wanted)[0], wanted)
        alone = {id(call) for call in again} & {id(call) for call in calls}
        return fused(tape, plain, wanted) if alone else calls

    def _outputs_read(self, tape: Tape) -> list[list[int]]:
        """For each result with gradients, whose memory its backward reads: numbers of results."""
        found = []
        for i in range(sum(t._rg for t in self.outputs)):
            calls, _, gradients = self._backwards[(i,)]
            slots = {slot for call in calls for slot in reads(call)}
            slots |= {slot for slot, _ in gradients if slot is not None}
            arrays = [a for a in (tape.array_of(Ref(s)) for s in slots) if isinstance(a, _ARRAYS)]
            shared = [
                j
                for j, t in enumerate(self.outputs)
                if any(np.may_share_memory(t._array, a) for a in arrays)
            ]
            found.append(shared)
        return found

    def _compile_backward(self, tape: Tape, saved: list[int]) -> dict[Any, Callable[..., Any]]:
        return {
            kind: backward_of(tape, calls, seeds, saved, gradients, self._label)
            for kind, (calls, seeds, gradients) in self._backwards.items()
        }

    # ---- use -------------------------------------------------------------------------------------

    def misfit(self) -> str:
        """What differs from the recorded run in state or tensors; "" if it may be replayed."""
        for t, array, rg in self._seen:
            if t._array is not array or t._rg is not rg or t._node is not None:
                text = self._look()
                if text:
                    return text
                break
        return self.state.changed()

    def _look(self) -> str:
        """As `misfit`, of tensors, whose arrays are noted."""
        for t, shape, dtype, rg in self._checks:
            a = t._array
            if a.shape != shape or a.dtype != dtype or t._rg is not rg or t._node is not None:
                return self._tensor_text(t, shape, rg)
        self._seen = [(t, t._array, rg) for t, _, _, rg in self._checks]
        self._arrays = [t._array for t in self._externals]
        return ""

    @staticmethod
    def _tensor_text(t: Any, shape: Any, rg: bool) -> str:
        if t._rg is not rg:
            return f"requires_grad of a tensor of shape {tuple(shape)}"
        return f"shape or dtype of a tensor that was {tuple(shape)}"

    def replay(self, tensors: Sequence[Any]) -> Any:
        """What the function would return, with its effects.

        Raises:
            Retreat: A value that the recording relies on differs; nothing has happened.
        """
        arrays = [t._array for t in tensors]
        arrays += self._arrays
        before = random.positions() if self.draws else None
        kept = [(t, t._array.copy()) for t in self._written] if self._at_once else ()
        try:
            outs, saved, values = quietly(self.forward, *arrays)
        except Exception as error:  # what eager raises names the user's line
            if before is not None:
                random.rewind(before)
            for t, old in kept:
                t._array[...] = old
            raise Retreat from error
        if self._effects is not None:
            self._effects(values, True)
        self.replays += 1
        outputs = [wrap(array) for array in outs]
        if self._edges and state.recording:
            count = outputs.pop()._array if self._weighted else self._count
            self._hang(outputs, tensors, saved, count)
        if self._spec == ("out", 0):
            return outputs[0]
        return self._rebuilt(self._spec, outputs, tensors)

    def _hang(
        self, outputs: list[Any], tensors: Sequence[Any], saved: tuple[Any, ...], count: Any
    ) -> None:
        edges = self._fixed
        if edges is None:
            edges = tuple(
                [input_edge(t if kind == "old" else tensors[t]) for kind, t in self._edges]
            )
        versions: list[Any] = []
        for t in self._guarded:
            version = t._version or version_of(t)
            versions += (version, version[0])
        for i in self._guarded_inputs:
            version = version_of(tensors[i])
            versions += (version, version[0])
        own: list[tuple[Any, ...]] = []
        for read in self._exposed:
            of_results: list[Any] = []
            for j in read:
                version = version_of(outputs[j])
                of_results += (version, version[0])
            own.append(tuple(of_results))
        differentiable = [outputs[i] for i in self._differentiable]
        params = {"backward": self._backward, "mean_count": count, "held": Held(saved, own)}
        if len(differentiable) > 1:
            params["outputs"] = len(differentiable)
        hang(differentiable, edges, tuple(versions), params)

    def _backward(self, saved: list[Any], gs: Sequence[Any]) -> Sequence[Any]:
        given = tuple(i for i, g in enumerate(gs) if g is not None)
        program = self._programs.get(given)
        if program is not None:
            found: Sequence[Any] = program(saved, *[gs[i] for i in given])
            return found
        total: list[Any] = [None] * len(self._edges)
        for i in given:
            part = self._programs[(i,)]([*saved], gs[i])
            total = [
                b if a is None else a if b is None else a + b
                for a, b in zip(total, part, strict=True)
            ]
        return total

    def _rebuilt(self, spec: Any, outputs: list[Any], tensors: Sequence[Any]) -> Any:
        kind, value = spec
        if kind == "out":
            return outputs[value]
        if kind == "in":
            return tensors[value]
        if kind in ("old", "plain"):
            return value
        if kind is dict:
            return {k: self._rebuilt(x, outputs, tensors) for k, x in value.items()}
        return kind([self._rebuilt(x, outputs, tensors) for x in value])

    # ---- proof -----------------------------------------------------------------------------------

    def prove(self, run: Callable[[], Any], tensors: Sequence[Any]) -> tuple[Any, bool]:
        """The result of the eager `run`, and whether a replay gives the same.

        Outputs, gradients and the tensors that the step changes are compared.

        Raises:
            Retreat: As `replay` does; `run` was not called.
        """
        before = random.state_dict()
        kept = [(t, t._array.copy()) for t in self._written]
        arrays = [t._array for t in tensors]
        arrays += [t._array for t in self._externals]
        try:
            outs, saved, values = quietly(self.forward, *arrays)
            if self._effects is not None:
                self._effects(values, False)
            outs = outs[:-1] if self._weighted else outs
            mine: Sequence[Any] = ()
            if self._edges and state.recording:  # before the eager run: not both need memory then
                seeds = seeds_like([outs[i] for i in self._differentiable])
                mine = quietly(self._backward, [*saved], seeds)
        except Exception as error:
            random.load_state_dict(before)
            for t, old in kept:
                t._array[...] = old
            raise Retreat from error
        del saved, values
        changed = [t._array.copy() for t in self._written]
        for t, old in kept:
            t._array[...] = old
        random.load_state_dict(before)
        output = run()
        found: list[Any] = []
        self._flat(self._spec, output, found)
        same = alike(tuple(np.asarray(a) for a in outs), tuple(t._array for t in found))
        same = same and alike(tuple(changed), tuple(t._array for t in self._written))
        if same and self._edges and state.recording:
            same = self._prove_gradients(found, tensors, mine)
        self.replays += 1
        return output, same

    def _prove_gradients(
        self, outputs: Sequence[Any], tensors: Sequence[Any], mine: Sequence[Any]
    ) -> bool:
        roots = [t for t in outputs if t._rg]
        if len(roots) != len(self._differentiable):
            return False
        seeds = seeds_like([t._array for t in roots])
        targets = [edge_of(t if kind == "old" else tensors[t]) for kind, t in self._edges]
        nodes = [t._node for t in roots]
        found = StandingPass(set(targets) - {None}, nodes).gradients(nodes, seeds)
        return all(
            (a is None) == (b is None) and (a is None or alike(np.asarray(a), np.asarray(b)))
            for a, b in zip(mine, [found.get(target) for target in targets], strict=True)
        )

    def _flat(self, spec: Any, value: Any, found: list[Any]) -> None:
        """The output tensors in their order."""
        kind, part = spec
        if kind == "out":
            if part == len(found):
                found.append(value)
        elif kind is dict:
            for key, inner in part.items():
                self._flat(inner, value[key], found)
        elif isinstance(part, list):
            for inner, x in zip(part, value, strict=True):
                self._flat(inner, x, found)


def _mean_of(tape: Tape, outputs: Sequence[Any]) -> Any:
    """How many targets a cross-entropy is a mean of: a number, or the value with their weights."""
    for t in outputs:
        node = t._node
        if node is None or node.op.name != "cross_entropy":
            continue
        found = divisor(node, tape.residuals.get(node, ()))
        if found is not None:
            return found
    return None
