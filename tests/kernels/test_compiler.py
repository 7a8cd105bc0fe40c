"""Kernels are compiled once, with what they call, and say so on a terminal alone."""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import time

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.registry import cpu_target
from patience import until

from halfmask.kernels.compilation import cache
from halfmask.kernels.compilation import pipeline as notices
from halfmask.kernels.compilation.compiler import ascend, bare, kernel
from halfmask.kernels.partition.search_tree import select_rank


@kernel
def step(x, by):
    return x + by


@kernel
def walk(narrow, wide):
    total, at = 0, -1
    while at < 2:
        at = step(at, 1)
        total += step(narrow[at], wide[at]) + step(narrow[at], -1)
    return total


@pytest.fixture
def nothing_compiled(tmp_path, monkeypatch):
    """No code from a run before: it would leave nothing to compile, or be of another source."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)


@pytest.mark.usefixtures("nothing_compiled")
def test_a_part_has_one_version_for_all_widths_and_constants():
    assert walk(np.arange(3, dtype=np.int32), np.arange(3)) == 6
    assert walk(np.arange(3, dtype=np.int8), np.arange(3)) == 6
    assert len(step.get_call_template.__self__.overloads) == 1


@pytest.mark.usefixtures("nothing_compiled")
def test_a_part_can_be_called_from_python_too():
    assert step(2, 3) == 5
    assert step(2, 0.5) == 2.5


@bare
def same(values):
    return values


@bare
def paired(values):
    return len(values), values


@bare
def first(values):
    return len(values), values[0]


@kernel
def first_of_same(values):
    return same(values)[0]


@pytest.mark.usefixtures("nothing_compiled")
@pytest.mark.parametrize("broken", [same, paired, first_of_same])
def test_a_bare_kernel_gives_no_array_back(broken):
    """Nobody would count who holds it; tried twice, as the first try must leave nothing behind."""
    for _ in range(2):
        with pytest.raises(numba.TypingError, match="is bare and returns"):
            broken(np.arange(3))


@pytest.mark.usefixtures("nothing_compiled")
def test_a_bare_kernel_gives_numbers_back():
    assert first(np.arange(4, 7)) == (3, 4)


@pytest.mark.usefixtures("nothing_compiled")
def test_compiling_leaves_numba_and_the_collector_as_they_were():
    calls, frozen = numba.types.BaseFunction.get_call_type, gc.get_freeze_count()
    gc.unfreeze()

    @kernel
    def larger(x, y):
        return max(x, y) + max(2 * x, y)

    @kernel
    def wrong(x):
        return x.nothing

    assert larger(2, 3) == 7
    assert larger(2.5, 3.0) == 8.0  # what was remembered is of the same types only
    with pytest.raises(numba.TypingError):
        wrong(1)
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0  # what was set aside is collected one day
    if frozen:
        gc.freeze()
    assert "resolve_function_type" not in vars(cpu_target.typing_context)
    assert numba.types.BaseFunction.get_call_type is calls


@pytest.mark.usefixtures("nothing_compiled")
def test_what_somebody_froze_stays_frozen():
    @kernel
    def twice(x):
        return 2 * x

    before = gc.get_freeze_count()
    gc.freeze()
    assert twice(4) == 8
    assert gc.get_freeze_count() > 0
    if not before:
        gc.unfreeze()


@pytest.mark.usefixtures("nothing_compiled")
def test_a_kernel_fails_as_python_does():
    @kernel
    def divide(x, y):
        return x // y

    with pytest.raises(ZeroDivisionError):
        divide(1, 0)


@given(st.lists(st.integers(0, 5), max_size=40))
def test_ascend_is_a_stable_order(values):
    keys = np.array(values, np.uint64)
    assert ascend(keys).tolist() == np.argsort(keys, kind="stable").tolist()


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=40), st.data())
def test_ranked_is_what_stands_there_in_order(values, data):
    rank = data.draw(st.integers(0, len(values) - 1))
    assert select_rank(np.array(values), len(values), rank) == sorted(values)[rank]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_notice_is_shown_on_a_terminal_and_cleared(monkeypatch):
    out = Terminal()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(notices, "_AFTER", 0.0)
    monkeypatch.setattr(notices, "_EVERY", 0.001)
    with notices.notice(), notices.notice():
        until(lambda: "compiling, once: " in out.getvalue())
    until(lambda: out.getvalue().endswith("\r\x1b[K"))


def test_nothing_is_said_elsewhere(monkeypatch):
    out = io.StringIO()
    monkeypatch.setattr(sys, "stderr", out)
    monkeypatch.setattr(notices, "_AFTER", 0.0)
    with notices.notice():
        time.sleep(0.01)
    assert out.getvalue() == ""


def test_kernels_load_no_linear_algebra_and_leave_it_to_others():
    said = (
        "import sys, numba, numpy as np\n"
        "from halfmask.kernels.compilation.compiler import ascend\n"
        "ascend(np.array([2, 1]))\n"
        "print('scipy.linalg' in sys.modules)\n"
        "print(numba.njit(lambda a: np.dot(a, a))(np.array([1.0, 2.0])))\n"
    )
    command = [sys.executable, "-c", said]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert ran.stdout.split() == ["False", "5.0"]
