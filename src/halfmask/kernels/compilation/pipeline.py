"""Kernels compiled with all that they call, once, by a pipeline of our own inside numba.

Called from Python, a kernel is compiled whole, optimized and kept in the cache. Called by another
kernel, it is only translated: it is optimized and emitted as a part of its caller, once, and its
integers are all 64 bits wide, so that there is one version of it. numba by itself optimizes and
emits every function alone as well, wraps it for Python, and translates it again for every width and
every constant; that more than doubles the time of a first use. What numba's own functions give for
types of arguments is found once; numba tries all their forms again at every use.

A terminal shows meanwhile that something is compiled, which happens once.
"""

# What numba offers for its own extension is not typed.
# mypy: disable-error-code="no-untyped-call,call-overload,attr-defined,import-untyped"

from __future__ import annotations

import gc
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from llvmlite.binding.newpassmanagers import create_new_function_pass_manager
from numba import njit, types
from numba.core import compiler, typed_passes, untyped_passes
from numba.core.base import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.errors import TypingError
from numba.core.registry import cpu_target

from halfmask.kernels.compilation.cache import KernelCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


_FUNCTIONS: Any = types.BaseFunction
_CALL = _FUNCTIONS.get_call_type
_AFTER, _EVERY = 0.4, 0.2  # seconds


class _Notice:
    """What kernels that compile each other say together."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.spent = 0.0  # by kernels that were compiled before, in this process
        self.over = threading.Event()

    def begin(self) -> None:
        with self.lock:
            self.depth += 1
            if self.depth > 1 or not sys.stderr.isatty():
                return
            self.over = threading.Event()
            arguments = (sys.stderr, self.over, time.monotonic())
            threading.Thread(target=self.tell, args=arguments, daemon=True).start()

    def end(self) -> None:
        with self.lock:
            self.depth -= 1
            if self.depth == 0:
                self.over.set()

    def tell(self, out: TextIO, over: threading.Event, began: float) -> None:
        told = False
        while not over.wait(_EVERY):
            passed = self.spent + time.monotonic() - began
            if passed >= _AFTER:
                out.write(f"\rcompiling, once: {passed:.0f} s\x1b[K")
                out.flush()
                told = True
        self.spent += time.monotonic() - began
        if told:
            out.write("\r\x1b[K")
            out.flush()


_NOTICE = _Notice()


@contextmanager
def notice() -> Iterator[None]:
    """Show the time spent on a terminal, and nothing elsewhere, while the block runs."""
    _NOTICE.begin()
    try:
        yield
    finally:
        _NOTICE.end()


class _Part(JITCodeLibrary):
    """Code that other code calls: linked as it is, to be optimized and emitted with its callers."""

    def finalize(self) -> None:
        """Link what this code calls, and leave the rest to the caller."""
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)  # noqa: SLF001 - as numba's own
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)  # noqa: SLF001
        self._finalized = True


class _Light(JITCodeLibrary):
    """Code that vectors and unrolled loops do nothing for: optimized in half the time."""

    def _optimize_functions(self, module: Any) -> None:
        """What is worth doing before parts are linked."""
        module.data_layout = self._codegen._data_layout  # noqa: SLF001 - as numba's own
        passes = create_new_function_pass_manager()
        for add in (passes.add_sroa_pass, passes.add_simplify_cfg_pass):
            add()
        passes.add_instruction_combine_pass()
        builder = self._builder()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """One pass over all parts; nothing counts references here."""
        builder = self._builder()
        builder.getModulePassManager().run(self._final_module, builder)

    def _builder(self) -> Any:
        return self._codegen._pass_builder(opt=2, loop_vectorize=False, slp_vectorize=False)  # noqa: SLF001


class _LightPart(_Part, _Light):
    """Both."""


class _PartContext:
    """The target as it is, but for parts, which have no address."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        return getattr(self._target, name)

    def get_executable(self, library: Any, described: Any, environment: Any) -> Any:
        """A name for the part, which nothing calls by address."""
        library._ensure_finalized()  # noqa: SLF001 - as numba's own
        name = described.qualname.split(".")[-1]
        return _dynfunc.make_function(
            described.lookup_module(), name, "a part", 0, environment, (library,)
        )


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(typed_passes.NativeLowering):
    """Lower a part without emitting it."""

    _name = "halfmask_part_lowering"
    _library = _Part

    def run_pass(self, state: Any) -> Any:
        """Lower into a library that is not emitted."""
        target = state.targetctx
        state.library = self._library(target.codegen(), state.func_id.func_qualname)
        state.targetctx = _PartContext(target)
        try:
            return super().run_pass(state)
        finally:
            state.targetctx = target


@register_pass(mutates_CFG=True, analysis_only=False)
class _LightPartLowering(_PartLowering):
    _name = "halfmask_light_part_lowering"
    _library = _LightPart


@register_pass(mutates_CFG=True, analysis_only=False)
class _LightLowering(typed_passes.NativeLowering):
    """Lower a kernel that is optimized little."""

    _name = "halfmask_light_lowering"

    def run_pass(self, state: Any) -> Any:
        """Lower into a library of that kind."""
        state.library = _Light(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().run_pass(state)


@register_pass(mutates_CFG=True, analysis_only=False)
class _TypeInference(typed_passes.NopythonTypeInference):
    """Find all types, and refuse a bare kernel that gives an array back: nobody counts its uses."""

    _name = "halfmask_type_inference"

    def run_pass(self, state: Any) -> Any:
        """Look at the type that is returned, and what it holds."""
        done = super().run_pass(state)
        given = state.return_type
        counted = state.targetctx.data_model_manager[given].contains_nrt_meminfo()
        if counted and not state.flags.nrt:
            name = state.func_id.func_name
            raise TypingError(f"{name} is bare and returns {given}, an array: mark it kernel.")
        return done


class _Whole(compiler.CompilerBase):
    """numba's pipeline without what kernels do not use: closures, contexts, literals, pruning."""

    lowering = typed_passes.NativeLowering

    def define_pipelines(self) -> list[Any]:
        """One pipeline."""
        passes = PassManager("kernel")
        for step in (
            untyped_passes.TranslateByteCode,
            untyped_passes.FixupArgs,
            untyped_passes.IRProcessing,
            untyped_passes.GenericRewrites,
            untyped_passes.ReconstructSSA,
            _TypeInference,
            typed_passes.PreLowerStripPhis,
            typed_passes.InlineOverloads,
            typed_passes.IRLegalization,
            typed_passes.AnnotateTypes,
            self.lowering,
            typed_passes.NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


class _Inside(_Whole):
    lowering = _PartLowering


class _WholeLight(_Whole):
    lowering = _LightLowering


class _InsideLight(_Whole):
    lowering = _LightPartLowering


_FOUND: dict[Any, Any] = {}  # what was found of types, by who was asked, function and arguments


def _certain(one: Any) -> bool:
    return isinstance(one, types.Type) and one.is_precise()


def _remember(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """What numba's functions give for types of arguments, found once."""

    def resolve_once(function: Any, arguments: Any, keywords: Any) -> Any:
        own = isinstance(function, types.Function) or not isinstance(function, types.Type)
        if not own or keywords or not all(map(_certain, arguments)):
            return resolve(function, arguments, keywords)
        key = "type", function, tuple(arguments)
        if key not in _FOUND:
            found = resolve(function, arguments, keywords)
            if found is None:
                return None
            _FOUND[key] = found
        return _FOUND[key]

    return resolve_once


def _call_once(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
    """The same of operators where code is lowered, which asks again for every use."""
    plain = getattr(getattr(function, "typing_key", None), "__module__", "") == "_operator"
    if not plain or keywords or not all(map(_certain, arguments)):
        return _CALL(function, context, arguments, keywords)
    key = "call", function, tuple(arguments)
    if key not in _FOUND:
        _FOUND[key] = _CALL(function, context, arguments, keywords)
    return _FOUND[key]


@contextmanager
def _compiling() -> Iterator[None]:
    """Types remembered, and nothing collected, while a kernel is compiled."""
    typing = cpu_target.typing_context
    with notice(), global_compiler_lock:
        if "resolve_function_type" in vars(typing):  # inside another kernel's
            yield
            return
        collects = gc.isenabled()  # asked under the lock: another thread may be compiling before it
        typing.resolve_function_type = _remember(typing.resolve_function_type)
        _FUNCTIONS.get_call_type = _call_once
        gc.disable()  # compiling makes a million small things, most of which stay
        try:
            yield
        finally:
            _FUNCTIONS.get_call_type = _CALL
            del typing.resolve_function_type
            if collects:
                _set_aside()
                gc.enable()


def _set_aside() -> None:
    """Count what was made as old, or it would be looked through at once, all of it."""
    if not gc.get_freeze_count():  # what somebody else froze stays so
        gc.freeze()
        gc.unfreeze()


def _load_registries() -> None:
    """Load what numba says of arrays without SciPy's linear algebra, which it would only look for.

    Who compiles such functions finds it then: numba looks again.
    """
    if "numba.np.arraymath" in sys.modules:
        return
    from numba.np import linalg

    look = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        linalg.ensure_blas = look


def _wide(one: Any) -> Any:
    """The type that a part takes for an argument: no constants, and integers of 64 bits."""
    one = types.unliteral(one)
    if isinstance(one, types.Integer) and one is not types.uint64:
        return types.int64
    return one


def compile_parts(function: Callable[..., Any], *, makes: bool = True, light: bool = False) -> Any:
    """Compile ``function`` where it is first called, with what it calls.

    What ``makes`` no array counts no references either; what is ``light`` is optimized less.
    """
    classes = (_WholeLight, _InsideLight) if light else (_Whole, _Inside)
    how: dict[str, Any] = {"nogil": True, "no_cfunc_wrapper": True, "_nrt": makes}
    whole: Any = njit(pipeline_class=classes[0], **how)(function)
    part: Any = njit(pipeline_class=classes[1], no_cpython_wrapper=True, **how)(function)
    whole._cache = KernelCache(function)  # noqa: SLF001 - numba offers no other way
    compile_part, compile_whole = part.compile, whole.compile

    def as_part(signature: Any) -> Any:
        if isinstance(signature, tuple):
            signature = tuple(map(_wide, signature))
        return compile_part(signature)

    def as_whole(signature: Any) -> Any:
        with _compiling():
            _load_registries()
            return compile_whole(signature)

    part.compile, whole.compile = as_part, as_whole
    # What another kernel sees is the part.
    whole.get_call_template, whole.get_overload = part.get_call_template, part.get_overload
    return whole
