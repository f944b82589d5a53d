"""How the body of a kernel becomes machine code: numba's compiler without what bodies do not need.

Three quarters of what numba spends on a body are general: it copies all of its representation for
each function that becomes a piece of it, collects garbage in the middle of it, compiles a wrapper
that is never called, and optimises before it optimises. `Lean` leaves that out. All of it is
numba's own inside. Where this version of numba lacks a part that only saves time, the first use is
slower; where it lacks what the others rest on, the import fails and plain bodies serve.

`BodyCompiler` gives a body its entry from Python: `entry(items, team, *args)` shares out the items
to the team of threads, by pieces, and belongs to the same machine code.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import sys
import time
from collections.abc import Iterator
from typing import Any

import numba
import numba.core.codegen as codegen
from llvmlite import binding, ir
from numba.core import base, cgutils, transforms, types
from numba.core.callconv import RETCODE_NONE, RETCODE_OK
from numba.core.callwrapper import PyCallWrapper
from numba.core.compiler import Compiler
from numba.core.compiler_machinery import register_pass
from numba.core.errors import WarningsFixer  # type: ignore[attr-defined]
from numba.core.inline_closurecall import inline_closure_call
from numba.core.ir_utils import get_definition, guard
from numba.core.postproc import PostProcessor, VariableLifetime
from numba.core.typed_passes import NativeLowering
from numba.core.untyped_passes import InlineInlinables

from .. import ahead, loader
from ..unobserved import unobserved
from .lowering import BodyLower, known_call

_I64 = ir.IntType(64)
_BYTES = ir.IntType(8).as_pointer()
PIECE_TYPE = ir.FunctionType(ir.VoidType(), [_I64, _I64, _BYTES])  # first, last, arguments
SHARE_TYPE = ir.FunctionType(_BYTES, [_I64] * 6)  # see `team.share_out`

_ENTRY = "minitorch_entry"  # says that a body has one
_SUCCESS = (RETCODE_OK, RETCODE_NONE)
_PIECES = 16  # into which the items are cut at most
ROUND_BITS = 32  # of the number of items

# Loops begin with a line of the cache: where the core's front end has to serve two threads, short
# ones lose a tenth of their speed elsewhere. It holds for all that LLVM compiles in this process.
binding.set_option("minitorch", "-align-loops=64")

# Of numba's passes: `with` blocks, closures, calls that numba inlines itself, and arithmetic of
# whole arrays have no place in a body.
_UNNEEDED = frozenset(
    (
        "with_lifting",
        "inline_closure_likes",
        "make_function_op_code_to_jit_function",
        "inline_overloads",
        "nopython_rewrites",
        "dump_parfor_diagnostics",
    )
)

# Compilations in a process that take longer together are told to the user.
NOTED_SECONDS = 1.0
_noted = False
_seconds = 0.0
_depth = 0


def announced() -> None:
    """This process compiles because it was told to: nothing is said about it."""
    global _noted
    _noted = True


def _note(seconds: float) -> None:
    """Says once in a process why it waits, on the standard error stream."""
    global _noted, _seconds
    _seconds += seconds
    if not _noted and _seconds > NOTED_SECONDS:
        _noted = True
        if sys.stderr is None:  # closed; `print` would take the standard output instead
            return
        with contextlib.suppress(OSError, ValueError):
            print(
                "minitorch: compiling kernels for this machine, once. "
                "`python -m minitorch.kernels --build` compiles those of common layers ahead.",
                file=sys.stderr,
            )


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Garbage is not collected meanwhile: hardly anything that a compilation makes is any yet; and
    no profile function sees it."""
    global _depth
    start, collecting = time.perf_counter(), gc.isenabled()
    gc.disable()
    _depth += 1
    try:
        with unobserved():
            yield
    finally:
        _depth -= 1
        if collecting:
            gc.enable()
        if not _depth:
            _note(time.perf_counter() - start)


# Signatures of calls of numba's functions, by function and types, which are kept with them.
_resolved: dict[Any, Any] = {}
_takes_location = functools.cache(getattr(base, "_has_loc", lambda function: False))


_process = PostProcessor.run


def _tidied(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """What numba does between two passes: when values are used is found out only where it counts,
    before the last one."""
    if emit_dels or self.func_ir.is_generator:
        _process(self, emit_dels, extend_lifetimes)
        return
    self.func_ir.blocks = transforms.canonicalize_cfg(self.func_ir.blocks)
    self.func_ir.variable_lifetime = VariableLifetime(self.func_ir.blocks)
    self.func_ir.generator_info = None


def _not_caught(self: Any, filename: Any = None, lineno: Any = None) -> Any:
    """Numba keeps warnings of each variable's type for later; bodies have none."""
    return contextlib.nullcontext()


@contextlib.contextmanager
def _remembering(body: Any = None) -> Iterator[None]:
    """Calls of the same function with the same types are resolved once, among other shortcuts.

    To find what `+` of two integers is, numba tries dozens of candidates each time.

    Args:
        body: The function that `BodyLower` lowers; not what numba compiles for it.
    """
    resolve = types.Function.get_call_type

    def remembered(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws:
            return resolve(function, context, args, kws)
        if len(context.callstack) and context.callstack[0].func_id.func is body:
            found = known_call(function.typing_key, args)
            if found is not None:
                return found
        key = id(context), id(function), *map(id, args)
        known = _resolved.get(key)
        if known is None:
            known = _resolved[key] = resolve(function, context, args, kws), context, function, args
        return known[0]

    instead: list[tuple[Any, str, Any]] = [
        (types.Function, "get_call_type", remembered),
        (PostProcessor, "run", _tidied),
        (WarningsFixer, "catch_warnings", _not_caught),
        (base, "_has_loc", _takes_location),
    ]
    before = [(owner, name, getattr(owner, name, None)) for owner, name, _ in instead]
    for change in instead:
        setattr(*change)
    try:
        yield
    finally:
        for change in before:
            setattr(*change)


@register_pass(mutates_CFG=True, analysis_only=False)
class _Inline(InlineInlinables):
    """Puts functions that are `inlined` into the body, without copying all that is there before."""

    _name = "minitorch_inline"

    def _do_work(
        self, state: Any, work_list: Any, block: Any, i: int, call: Any, worker: Any
    ) -> bool:
        callee: Any = getattr(guard(get_definition, state.func_ir, call.func), "value", None)
        if getattr(callee, "targetoptions", {}).get("inline") != "always":
            return False
        options = {"work_list": work_list, "replace_freevars": False}
        inline_closure_call(state.func_ir, {}, block, i, callee.py_func, **options)
        return True


class _Library(codegen.JITCodeLibrary):
    """Optimises a module as a whole, once.

    Attributes:
        written_out: Whether its inner loops are vector code already. Else LLVM makes it of them,
            and needs more passes for that; here unrolled loops would only be long.
    """

    written_out = False

    def _optimize_functions(self, ll_module: Any) -> None:
        if self.written_out:
            ll_module.data_layout = self._codegen._data_layout
        else:
            super()._optimize_functions(ll_module)

    def _optimize_final_module(self) -> None:
        options = binding.create_pipeline_tuning_options()
        options.speed_level = 3
        options.loop_vectorization, options.slp_vectorization = True, False
        options.loop_unrolling = not self.written_out
        builder = binding.create_pass_builder(self._codegen._tm, options)
        # Counts of references that cancel out go first: they would keep loops from vector code.
        first = binding.create_new_module_pass_manager()
        first.add_sroa_pass()
        first.add_loop_rotate_pass()
        first.add_instruction_combine_pass()
        first.add_jump_threading_pass()
        first.add_refprune_pass()
        first.run(self._final_module, builder)
        passes = builder.getModulePassManager()
        passes.add_refprune_pass()
        passes.run(self._final_module, builder)


def _has_pass_builder() -> bool:
    needed = ("create_pipeline_tuning_options", "create_pass_builder")
    return all(hasattr(binding, name) for name in needed) and hasattr(
        codegen, "create_pass_builder"
    )


def _share(entry: Any, body: Any) -> None:
    """The code of `entry(items, team, *args)`: all items, or pieces of them by several threads.

    `items` are those of a first round in the lower half, and of one that follows it in the upper.
    `team` is 0 or the address of three words: that of the function that shares out, of its state,
    and the number of threads.
    """
    builder = ir.IRBuilder(entry.append_basic_block())
    result, error, items, team, *args = entry.args
    rounds = builder.and_(items, _I64((1 << ROUND_BITS) - 1)), builder.lshr(items, _I64(ROUND_BITS))
    alone = builder.icmp_signed("==", team, _I64(0))
    with builder.if_then(alone):
        given = [result, error, _I64(0), builder.add(*rounds), *args]
        builder.ret(builder.call(body, given, attrs=("noinline",)))
    code = cgutils.alloca_once(builder, entry.function_type.return_type, zfill=True)
    values = [code, result, error, _I64(0), *args]
    place = cgutils.alloca_once_value(builder, cgutils.make_anonymous_struct(builder, values))
    piece = _piece(entry.module, body, place.type)
    words = builder.inttoptr(team, _I64.as_pointer())
    share, state, workers = (builder.load(builder.gep(words, [_I64(i)])) for i in range(3))
    share = builder.inttoptr(share, SHARE_TYPE.as_pointer())
    numbers = [state, *(builder.ptrtoint(a, _I64) for a in (piece, place))]
    for number, count in enumerate(rounds):
        with builder.if_then(builder.icmp_signed("<", _I64(0), count), likely=not number):
            if number:
                builder.store(rounds[0], cgutils.gep_inbounds(builder, place, 0, 3))
            many = builder.icmp_signed("<", _I64(_PIECES), count)
            pieces = builder.select(many, _I64(_PIECES), count)
            builder.call(share, [*numbers, count, pieces, workers])
    builder.ret(builder.load(code))


def _piece(module: Any, body: Any, kind: Any) -> Any:
    """The body as a piece: for some items, with what lies at an address."""
    piece = ir.Function(module, PIECE_TYPE, module.get_unique_name("piece"))
    piece.linkage = "internal"
    builder = ir.IRBuilder(piece.append_basic_block())
    first, last, place = piece.args
    found = builder.load(builder.bitcast(place, kind))
    fields = [builder.extract_value(found, i) for i in range(len(body.args))]
    code, result, error, before, *args = fields
    first, last = builder.add(first, before), builder.add(last, before)
    returned = builder.call(body, [result, error, first, last, *args], attrs=("noinline",))
    failed = builder.and_(*(builder.icmp_signed("!=", returned, c) for c in _SUCCESS))
    with builder.if_then(failed, likely=False):
        builder.store(returned, code)
    builder.ret_void()
    return piece


class _BodyLower(BodyLower):
    def create_cpython_wrapper(self, release_gil: bool = False) -> None:
        """Lets Python call the entry instead of the body."""
        context, descriptor = self.context, self.fndesc
        module = context.create_module("wrapper")
        kinds = descriptor.restype, descriptor.argtypes
        kind = context.call_conv.get_function_type(*kinds)
        body = ir.Function(module, kind, descriptor.llvm_func_name)
        entry = ir.Function(module, kind, module.get_unique_name("entry"))
        entry.linkage = "internal"
        _share(entry, body)
        given = (context, module, entry, descriptor, self.env, self.call_helper, release_gil)
        PyCallWrapper(*given).build()
        self.library.add_ir_module(module)
        self.metadata[_ENTRY] = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _BodyLowering(NativeLowering):
    _name = "minitorch_body_lowering"

    @property
    def lowering_class(self) -> Any:
        return _BodyLower


class Lean(Compiler):
    """numba's compiler without what plain functions do not need.

    Attributes:
        replaced: Passes that are taken instead of numba's.
        written_out: See `_Library`.
    """

    written_out = False
    replaced: dict[Any, Any] = {InlineInlinables: _Inline}

    def compile_extra(self, func: Any) -> Any:
        body = func if NativeLowering in self.replaced else None
        with _undisturbed(), _remembering(body):
            return super().compile_extra(func)

    def define_pipelines(self) -> Any:
        if _has_pass_builder():
            name = self.state.func_id.func_qualname
            self.state.library = _Library(self.state.targetctx.codegen(), name)
            self.state.library.written_out = self.written_out
            self.state.library.enable_object_caching()
        pipelines = super().define_pipelines()
        for pipeline in pipelines:
            passes = [p for p in pipeline.passes if p[0].name() not in _UNNEEDED]
            pipeline.passes = [(self.replaced.get(p, p), text) for p, text in passes]
            pipeline.finalize()
        return pipelines


class BodyCompiler(Lean):
    """Compiles bodies as if no two of their arrays lie in the same memory, so that loops over
    several become vector code. What reads and writes one place in one turn may be given twice."""

    replaced = Lean.replaced | {NativeLowering: _BodyLowering}

    def compile_extra(self, func: Any) -> Any:
        loader.begin_ahead()
        ahead.tell(ahead.body_name(func))
        result = super().compile_extra(func)
        if not result.metadata.get(_ENTRY):
            raise RuntimeError(
                f"kernels: numba {numba.__version__} compiles functions in another way than the "
                "versions that are known here. Install one of those, or set MINITORCH_KERNELS=off."
            )
        return result

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        self.state.flags.no_cfunc_wrapper = True
        return super().define_pipelines()


class WrittenOutCompiler(BodyCompiler):
    """For bodies whose inner loops are written as vector code (`vector.py`)."""

    written_out = True
