"""How kernels are compiled: once, as little as possible, and kept for the next process.

``kernel`` marks a function that numba compiles. With the versions of numba that it was tried with,
a pipeline of our own halves the time of a first use; with others numba compiles as it does.
"""

from __future__ import annotations

import sys
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numba
import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_F = TypeVar("_F", bound="Callable[..., Any]")
_TRIED = ("0.68.",)  # the pipeline reaches into numba, which may change between versions
# Times that compiling takes longer than loading, about; a first load loads parts of numba too.
_LOADING, _LOADING_MORE = 10, 50


def kernel(function: _F, *, makes: bool = True, light: bool = False) -> _F:
    """Compile ``function`` where it is first called."""
    if numba.__version__.startswith(_TRIED):
        from halfmask.kernels.compilation.pipeline import compile_parts

        return cast("_F", compile_parts(function, makes=makes, light=light))
    from halfmask.kernels.compilation.cache import folder

    setattr(numba.config, "CACHE_DIR", str(folder()))  # noqa: B010 - numba does not declare it
    return cast("_F", numba.njit(nogil=True, cache=True)(function))


def bare(function: _F) -> _F:
    """A kernel that makes no array, nor does what it calls: it compiles and runs faster."""
    return kernel(function, makes=False)


def light(function: _F) -> _F:
    """A bare kernel whose loops gain nothing by vectors or unrolling, which take long to find."""
    return kernel(function, makes=False, light=True)


def interpret(compiled: Any, **instead: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as Python runs it, with all kernels that it calls.

    Kernels that ``instead`` names are done by what it gives for them.
    """
    function = compiled.py_func
    names = {
        name: interpret(value, **instead) if hasattr(value, "py_func") else value
        for name, value in function.__globals__.items()
        if name in function.__code__.co_names
    }
    names |= {name: plain for name, plain in instead.items() if name in names}
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__)


def _loaded() -> bool:
    """Whether some kernel was compiled or loaded before."""
    return "numba.np.arraymath" in sys.modules  # what the pipeline loads first


class Sparing:
    """A kernel that is compiled when more was asked of it than Python does in the same time.

    ``work`` says how much a call is; calls go to ``plain``, which gives the very same, until they
    come to ``limit`` together. What was compiled already is used at once; what an earlier process
    compiled has to be loaded, which pays sooner than compiling, and soonest where another kernel is
    there already. ``more`` says of what a call gave
    how much more it was; what is too much for ``plain`` it leaves, by giving ``NotImplemented``.
    """

    def __init__(
        self,
        compiled: Any,
        work: Callable[..., int],
        limit: int,
        plain: Callable[..., Any] | None = None,
        more: Callable[..., int] | None = None,
    ) -> None:
        self.compiled, self.plain = compiled, plain or interpret(compiled)
        self._work, self._more, self._limit, self._done = work, more, limit, 0

    def __call__(self, *arguments: Any) -> Any:
        """What the kernel gives."""
        if not self.compiled.overloads:
            done = self._done + self._work(*arguments)
            if done <= self._patience:
                given = self.plain(*arguments)
                if given is not NotImplemented:
                    self._done = done + (self._more(given, *arguments) if self._more else 0)
                    return given
        return self.compiled(*arguments)

    @property
    def _patience(self) -> int:
        """How much Python does before the kernel is used."""
        if not self._kept:
            return self._limit
        return self._limit // (_LOADING_MORE if _loaded() else _LOADING)

    @cached_property
    def _kept(self) -> bool:
        """Whether an earlier process left this kernel compiled."""
        return bool(getattr(self.compiled._cache, "kept", ()))  # noqa: SLF001 - as in pipeline


# One way to allocate, shared by all kernels: every call of np.zeros or np.full by its own name,
# width or shape would be compiled again.


@kernel
def integers(size: Any) -> NDArray[np.int64]:
    """Room for so many int64."""
    return np.empty(size, np.int64)


@kernel
def constants(size: Any, value: int) -> NDArray[np.int64]:
    """So many int64 of one value."""
    out = integers(size)
    for i in range(size):
        out[i] = value
    return out


@kernel
def zeros(size: Any) -> NDArray[np.int64]:
    """So many int64 of 0."""
    return constants(size, 0)


@kernel
def count_up(size: Any) -> NDArray[np.int64]:
    """The numbers from 0."""
    out = integers(size)
    for i in range(size):
        out[i] = i
    return out


@kernel
def narrow(size: Any) -> NDArray[np.int32]:
    """Room for so many int32."""
    return np.empty(size, np.int32)


@kernel
def unsigned(size: Any) -> NDArray[np.uint64]:
    """Room for so many uint64."""
    return np.empty(size, np.uint64)


@kernel
def reals(size: Any, value: float) -> NDArray[np.float64]:
    """So many float64 of one value."""
    out = np.empty(size, np.float64)
    for i in range(size):
        out[i] = value
    return out


@kernel
def integer_rows(rows: Any, columns: Any, value: int) -> NDArray[np.int64]:
    """A table of int64 of one value."""
    out = np.empty((rows, columns), np.int64)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = value
    return out


@kernel
def real_rows(rows: Any, columns: Any, value: float) -> NDArray[np.float64]:
    """A table of float64 of one value."""
    out = np.empty((rows, columns), np.float64)
    for i in range(rows):
        for j in range(columns):
            out[i, j] = value
    return out


@kernel
def word_rows(rows: Any, columns: Any) -> NDArray[np.uint64]:
    """Room for a table of uint64."""
    return np.empty((rows, columns), np.uint64)


@bare
def clear(array: Any) -> None:
    """Set everything to 0."""
    for i in range(len(array)):
        array[i] = 0


@kernel
def ascend(keys: Any) -> NDArray[np.int64]:
    """The order in which keys ascend; equal ones keep theirs (a merge sort)."""
    size = len(keys)
    order, spare = count_up(size), integers(size)
    run = 1
    while run < size:
        for first in range(0, size, 2 * run):
            middle, last = min(first + run, size), min(first + 2 * run, size)
            i, j = first, middle
            for to in range(first, last):
                if i < middle and (j >= last or keys[order[i]] <= keys[order[j]]):
                    spare[to] = order[i]
                    i += 1
                else:
                    spare[to] = order[j]
                    j += 1
        order, spare = spare, order
        run *= 2
    return order
