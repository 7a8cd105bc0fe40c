from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import halfmask
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Approximate, Concentrated, Pure
from halfmask.dp.ledger import BudgetLedger
from halfmask.errors import BudgetExceededError, LedgerError

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(halfmask.__file__).parents[1])}


def test_spending_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    BudgetLedger.create(path, Pure(1)).spend(Pure("0.3"), "a histogram")
    again = BudgetLedger.open(path)
    assert again.remaining() == Pure("0.7")
    assert again.spent() == Pure("0.3")
    (line,) = again.history()
    assert (line.serial, line.purpose, line.amount) == (1, "a histogram", Pure("0.3"))


def test_of_two_who_grant_at_once_one_is_refused(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "people.ledger"
    BudgetLedger.create(path, Pure(1))
    with monkeypatch.context() as patch:
        patch.setattr(Path, "exists", lambda _: False)  # as both saw it
        with pytest.raises(LedgerError, match="open it instead"):
            BudgetLedger.create(path, Pure(9))
    assert BudgetLedger.open(path).granted() == Pure(1)


def test_refusal_records_nothing(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Approximate(1, "1e-6"))
    with pytest.raises(BudgetExceededError):
        ledger.spend(Approximate("0.5", "1e-5"), "too much delta")
    assert ledger.history() == ()
    assert ledger.spend(Pure(1), "pure counts as delta 0") == 1


def test_a_crash_between_spending_and_answering_keeps_the_spending(tmp_path: Path) -> None:
    path = tmp_path / "x"
    BudgetLedger.create(path, Pure(1))
    script = (
        "import os, sys\n"
        "from halfmask.dp.accountant import Accountant\n"
        "from halfmask.dp.ledger import BudgetLedger\n"
        "from halfmask.dp.budget import Pure\n"
        "accountant = Accountant.of(BudgetLedger.open(sys.argv[1]))\n"
        "accountant.allow(Pure('0.4'), 'about to crash')\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], env=ENVIRONMENT, check=False)  # noqa: S603
    assert done.returncode != 0
    assert BudgetLedger.open(path).remaining() == Pure("0.6")


def test_two_processes_never_spend_the_same_budget(tmp_path: Path) -> None:
    path = tmp_path / "x"
    BudgetLedger.create(path, Pure(1))
    script = (
        "import sys\n"
        "from halfmask.dp.ledger import BudgetLedger\n"
        "from halfmask.dp.budget import Pure\n"
        "from halfmask.errors import BudgetExceededError\n"
        "done = 0\n"
        "for _ in range(40):\n"
        "    try:\n"
        "        BudgetLedger.open(sys.argv[1]).spend(Pure('0.02'), 'x'); done += 1\n"
        "    except BudgetExceededError:\n"
        "        pass\n"
        "print(done)\n"
    )
    running = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, "-c", script, path], env=ENVIRONMENT, stdout=subprocess.PIPE
        )
        for _ in range(2)
    ]
    done = [int(one.communicate()[0]) for one in running]
    assert sum(done) == 50
    assert BudgetLedger.open(path).remaining() == Pure(0)


def test_what_is_no_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with pytest.raises(LedgerError, match="create it"):
        BudgetLedger.open(path)
    path.write_text("not a ledger at all, but a long enough text to be read as one")
    with pytest.raises(LedgerError, match="Nothing was computed"):
        BudgetLedger.open(path)
    with pytest.raises(LedgerError, match="exists"):
        BudgetLedger.create(path, Pure(1))


def test_an_accountant_of_a_ledger_gives_serials(tmp_path: Path) -> None:
    accountant = Accountant.of(BudgetLedger.create(tmp_path / "x", Concentrated(1)))
    assert accountant.allow(Concentrated("0.5"), "first").serial == 1
    assert accountant.allow(Pure("0.5"), "second").serial == 2
    assert accountant.remaining == Concentrated("0.375")
