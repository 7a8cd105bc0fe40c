from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path

import pytest

import halfmask
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Approximate, Concentrated, Pure, total
from halfmask.dp.ledger import BudgetLedger, table_identity
from halfmask.errors import (
    BudgetExceededError,
    InputError,
    LedgerError,
    ParameterError,
    PrivacyError,
)
from halfmask.ledger import LedgerFile
from halfmask.table.schema import Schema

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(halfmask.__file__).parents[1])}


def test_spending_outlives_the_process(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    BudgetLedger.create(path, Pure(1)).spend(Pure("0.3"), "a histogram")
    again = BudgetLedger.open(path)
    assert again.remaining() == Pure("0.7")
    assert again.spent() == Pure("0.3")
    (line,) = again.history()
    assert (line.serial, line.purpose, line.amount) == (1, "a histogram", Pure("0.3"))


def test_of_two_who_grant_at_once_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "people.ledger"
    BudgetLedger.create(path, Pure(1))
    with pytest.raises(InputError, match="stays as it is"):
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


def _changed(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as base:
        base.execute(statement)
        base.commit()


def test_each_fault_of_a_file_has_a_sentence_of_its_own(tmp_path: Path) -> None:
    """Only what is damaged is called so."""
    path = tmp_path / "x"
    with pytest.raises(InputError, match=r"`halfmask budget create x --grant EPSILON`"):
        BudgetLedger.open(path)
    path.write_text("not a ledger at all, but a long enough text to be read as one")
    with pytest.raises(InputError, match=r"is not a ledger.* Nothing was computed"):
        BudgetLedger.open(path)
    with pytest.raises(InputError, match="exists"):
        BudgetLedger.create(path, Pure(1))
    _changed(tmp_path / "other", "CREATE TABLE a (b)")
    with pytest.raises(InputError, match="is not a ledger"):
        BudgetLedger.open(tmp_path / "other")
    BudgetLedger.create(tmp_path / "new", Pure(1))
    _changed(tmp_path / "new", "PRAGMA user_version = 9")
    with pytest.raises(LedgerError, match="another version"):
        BudgetLedger.open(tmp_path / "new")
    with pytest.raises(InputError, match="cannot be made here"):
        BudgetLedger.create(tmp_path / "gone" / "x", Pure(1))


def test_a_row_of_another_kind_is_damage(tmp_path: Path) -> None:
    BudgetLedger.create(tmp_path / "x", Pure(1)).spend(Pure("0.5"), "x")
    _changed(tmp_path / "x", "UPDATE entries SET kind = 'gift' WHERE serial = 2")
    with pytest.raises(LedgerError, match="damaged"):
        BudgetLedger.open(tmp_path / "x")


def test_what_a_later_version_noted_is_not_passed_over(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Pure(1))
    with ledger._file.change() as change:
        change.append("gift", {})
    with pytest.raises(LedgerError, match="use a newer one"):
        ledger.spend(Pure("0.5"), "x")


def test_a_ledger_that_was_made_and_never_used_can_be_granted(tmp_path: Path) -> None:
    """A crash between making the file and granting leaves an empty one."""
    LedgerFile(tmp_path / "x").create()
    with pytest.raises(LedgerError, match=r"holds no budget"):
        BudgetLedger.open(tmp_path / "x")
    assert BudgetLedger.create(tmp_path / "x", Pure(1)).remaining() == Pure(1)


def test_a_locked_ledger_is_in_use_and_one_that_is_read_only_cannot_be_written(
    tmp_path: Path, monkeypatch
) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Pure(1))
    monkeypatch.setattr("halfmask.ledger._WAIT", 0.01)
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as base:
        base.execute("BEGIN EXCLUSIVE")
        with pytest.raises(LedgerError, match="in use by another program"):
            ledger.spend(Pure(1), "x")
        base.execute("ROLLBACK")
    monkeypatch.setattr(
        "halfmask.ledger.sqlite3.connect",
        _raising(sqlite3.OperationalError("attempt to write a readonly database")),
    )
    with pytest.raises(LedgerError, match="cannot be written"):
        ledger.spend(Pure(1), "x")
    for words in ("database disk image is malformed", "disk I/O error"):
        monkeypatch.setattr(
            "halfmask.ledger.sqlite3.connect", _raising(sqlite3.DatabaseError(words))
        )
        with pytest.raises(LedgerError, match="is damaged"):
            ledger.spend(Pure(1), "x")


def _raising(error: Exception):
    def connect(*_, **__):
        raise error

    return connect


def test_only_the_owner_can_read_a_ledger(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Pure(1))
    assert ledger.path.stat().st_mode & 0o777 == 0o600


CHANGES = {
    "a cheaper spending": "UPDATE entries SET body = replace(body, '1/2', '1/9') WHERE serial = 3",
    "a higher grant": "UPDATE entries SET body = replace(body, '\"1\"', '\"9\"') WHERE serial = 1",
    "a row less": "DELETE FROM entries WHERE serial = 2",
    "the last row less": "DELETE FROM entries WHERE serial = 3",
    "two rows in another order": "UPDATE entries SET body = CASE serial WHEN 2 THEN (SELECT body "
    "FROM entries WHERE serial = 3) ELSE '{}' END WHERE serial > 1",
    "an earlier time": "UPDATE entries SET at = '2001-01-01T00:00:00+00:00' WHERE serial = 2",
    "no end": "DELETE FROM head",
}


@pytest.mark.parametrize("keyed", [False, True], ids=["without a key", "with a key"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_removed_or_moved_row_is_noticed(
    tmp_path: Path, change: str, keyed: bool
) -> None:
    (tmp_path / "key").write_bytes(b"sixteen bytes or more")
    key = tmp_path / "key" if keyed else None
    ledger = BudgetLedger.create(tmp_path / "x", Pure(1), key=key)
    for amount in ("1/4", "1/2"):
        ledger.spend(Pure(amount), "x")
    assert BudgetLedger.open(ledger.path, key=key).remaining() == Pure("1/4")
    _changed(ledger.path, CHANGES[change])
    with pytest.raises(LedgerError, match="damaged"):
        BudgetLedger.open(ledger.path, key=key)
    with pytest.raises(LedgerError, match="damaged"):
        ledger.spend(Pure("1/8"), "x")


def test_a_hand_that_seals_anew_passes_without_a_key_and_not_with_one(tmp_path: Path) -> None:
    """What the docs say of checksums: the attacker rewrites all seals as the code does."""
    (tmp_path / "key").write_bytes(b"sixteen bytes or more")
    for key, passes in ((None, True), (tmp_path / "key", False)):
        path = tmp_path / f"ledger {passes}"
        BudgetLedger.create(path, Pure(1), key=key).spend(Pure(1), "x")
        forged = BudgetLedger(path)  # a local user who knows everything but the key
        path.unlink()
        forged = BudgetLedger.create(path, Pure(1))
        forged.spend(Pure("1/8"), "x")
        if passes:
            assert BudgetLedger.open(path, key=key).remaining() == Pure("7/8")
        else:
            with pytest.raises(LedgerError, match="another key"):
                BudgetLedger.open(path, key=key)
    with pytest.raises(InputError, match="16 bytes"):
        BudgetLedger.open(path, key=_short(tmp_path))
    with pytest.raises(InputError, match="cannot be read"):
        BudgetLedger.open(path, key=tmp_path / "no key")


def _short(folder: Path) -> Path:
    (folder / "short").write_bytes(b"short")
    return folder / "short"


def test_more_is_granted_with_a_reason_and_nothing_is_forgotten(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "people.ledger", Pure(1))
    ledger.spend(Pure(1), "first")
    with pytest.raises(
        BudgetExceededError,
        match=r"`halfmask budget raise people\.ledger --to EPSILON --reason \.\.\.`",
    ):
        ledger.spend(Pure(1), "second")
    for amount, reason in ((Pure(1), "no more"), (Approximate(2, "1e-6"), "another kind")):
        with pytest.raises(ParameterError, match="more than epsilon = 1: an epsilon alone"):
            ledger.raise_to(amount, reason)
    with pytest.raises(ParameterError, match="kept in the ledger"):
        ledger.raise_to(Pure(2), " ")
    ledger.raise_to(Pure(2), "the board agreed")
    assert ledger.remaining() == Pure(1)
    assert [grant.reason for grant in ledger.account().grants] == ["", "the board agreed"]
    assert ledger.spend(Pure(1), "second") == 2


def test_a_ledger_keeps_to_its_table(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Pure(3))
    of = Schema(person="id")
    people, others = table_identity(["id", "age"], of), table_identity(["id", "age", "pay"], of)
    assert people == table_identity(["age", "id"], of)
    assert len({people, others, table_identity(["id", "age"], None)}) == 3
    ledger.spend(Pure(1), "x", table=people)
    with pytest.raises(LedgerError, match=r"another table .* `halfmask budget bind x TABLE"):
        ledger.spend(Pure(1), "x", table=others)
    ledger.bind(others, "a column came")
    assert ledger.spend(Pure(1), "x", table=others) == 2
    assert ledger.remaining() == Pure(1)


@pytest.mark.parametrize("amount", [Pure(21), Approximate(1, "1e-3"), Concentrated(201)])
def test_a_budget_that_promises_nothing_needs_a_controller_who_insists(tmp_path, amount) -> None:
    with pytest.raises(PrivacyError, match="--insist"):
        BudgetLedger.create(tmp_path / "x", amount)
    assert BudgetLedger.create(tmp_path / "x", amount, insist=True).granted() == amount
    with pytest.raises(PrivacyError, match="--insist"):
        BudgetLedger.open(tmp_path / "x").raise_to(amount * 2, "more")


def test_disjoint_people_cost_the_largest_part(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Pure(2), partition="city")
    ledger.spend(Pure(1), "x", part=("Lille",))
    ledger.spend(Pure("1.5"), "x", part=("Nice", "Pau"))
    assert ledger.spent() == Pure("1.5")
    ledger.spend(Pure("1/2"), "everybody")
    assert ledger.spent() == Pure(2)
    with pytest.raises(BudgetExceededError):
        ledger.spend(Pure("1/8"), "x", part=("Pau",))
    ledger.spend(Pure("1/2"), "x", part=("Lille",))
    with pytest.raises(BudgetExceededError):
        ledger.spend(Pure("1/8"), "x")
    assert BudgetLedger.open(ledger.path).account().partition == "city"


def test_levels_are_spent_apart_and_never_beyond_their_demand(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Pure(3))
    tenth, half, one = Fraction(1, 10), Fraction(1, 2), Fraction(1)
    ledger.spend(Pure("1/2"), "x", levels={tenth: Fraction(0), half: half, one: half})
    assert ledger.account().left([tenth, half, one]) == (tenth, 0, half)
    with pytest.raises(BudgetExceededError, match=r"people who allow 0\.5"):
        ledger.spend(Pure("1/10"), "x", levels={tenth: tenth, half: tenth, one: tenth})
    ledger.spend(Pure("1/20"), "for everybody")
    assert ledger.account().left([tenth, half, one]) == (tenth / 2, 0, Fraction(9, 20))
    # Other levels now: whoever allows from 0.3 to below 0.7 paid what 0.1 or 0.5 paid, the larger.
    found = ledger.account().left([Fraction(3, 10), Fraction(7, 10)])
    assert found == (0, Fraction(7, 10) - half - Fraction(1, 20))


def test_levels_and_parts_go_together(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Pure(3), partition="city")
    one = Fraction(1)
    for city in ("Lille", "Nice"):
        ledger.spend(Pure("0.6"), "x", levels={one: Fraction(6, 10)}, part=(city,))
    assert ledger.account().left([one]) == (Fraction(4, 10),)


def test_epsilon_with_delta_and_rho_in_one_ledger(tmp_path: Path) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Approximate(4, "1e-6"))
    ledger.spend(Pure(1), "pure")
    ledger.spend(Approximate(1, "1e-7"), "approximate")
    assert ledger.spent() == Approximate(2, "1e-7")
    ledger.spend(Concentrated("0.01"), "concentrated")
    spent = ledger.spent()
    # rho = 0.01 is read at half of delta: 0.01 + 2 sqrt(0.01 ln(1 / 5e-7)) = 0.772 at most.
    assert 2.5 < float(spent.epsilon) < 2.772
    assert spent.delta == Fraction(6, 10**7)
    with pytest.raises(BudgetExceededError):
        ledger.spend(Approximate("0.1", "5e-7"), "too much delta")
    rho = BudgetLedger.create(tmp_path / "y", Concentrated("0.5"))
    rho.spend(Pure("1/2"), "pure")
    rho.spend(Concentrated("0.25"), "concentrated")
    assert rho.remaining() == Concentrated("0.125")
    with pytest.raises(PrivacyError, match="cannot pay"):
        rho.spend(Approximate("0.1", "1e-7"), "no rho implies it")
    with pytest.raises(PrivacyError, match="cannot pay"):
        BudgetLedger.create(tmp_path / "z", Pure(1)).spend(Concentrated("0.01"), "x")


def test_gaussian_noise_is_paid_in_rho_where_rho_was_granted(tmp_path: Path) -> None:
    accountant = Accountant.of(BudgetLedger.create(tmp_path / "x", Concentrated("0.5")))
    allowance = accountant.allow(Approximate(1, "1e-6"), "x")
    assert accountant.ledger.spent() == allowance.limit
    with pytest.raises(PrivacyError, match="cannot pay"):
        accountant.allow(Approximate(1, "1e-6"), "hidden groups", as_promised=True)


def test_many_small_costs_add_up_in_rho_where_that_is_less() -> None:
    costs = [Pure("0.1")] * 100
    # rho = 100 * 0.1**2 / 2 = 0.5 at delta = 5e-7: below 0.5 + 2 sqrt(0.5 ln(2e6)) = 5.9.
    assert 5 < float(total(costs, Approximate(20, "1e-6")).epsilon) < 5.9
    assert total(costs, Pure(20)) == Pure(10)
    assert total(costs[:3], Approximate(20, "1e-6")) == Approximate("0.3", 0)


def test_an_accountant_of_a_ledger_gives_serials(tmp_path: Path) -> None:
    accountant = Accountant.of(BudgetLedger.create(tmp_path / "x", Concentrated(1)))
    assert accountant.allow(Concentrated("0.5"), "first").serial == 1
    assert accountant.allow(Pure("0.5"), "second").serial == 2
    assert accountant.remaining == Concentrated("0.375")


@pytest.mark.parametrize("amount", [1, "1", None, (1, 2)])
def test_what_is_no_budget_is_refused_with_what_to_write(tmp_path: Path, amount) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", Pure(1))
    for use in (
        lambda: ledger.raise_to(amount, "more"),
        lambda: ledger.spend(amount, "a count"),
        lambda: BudgetLedger.create(tmp_path / "y", amount),
    ):
        with pytest.raises(ParameterError, match=r"give a budget, such as Pure\(2\)"):
            use()
    assert not (tmp_path / "y").exists()
    with pytest.raises(ParameterError, match="why, in a few words"):
        ledger.raise_to(Pure(2), None)
    assert (ledger.granted(), ledger.history()) == (Pure(1), ())


@pytest.mark.parametrize(
    ("granted", "wanted", "told"),
    [
        (Pure(1), Approximate(2, "1e-6"), "an epsilon alone"),
        (Approximate(1, "1e-6"), Pure(2), "an epsilon and a delta"),
        (Concentrated("0.1"), Pure(2), "a rho"),
    ],
    ids=["delta for pure", "no delta", "epsilon for rho"],
)
def test_a_raise_says_in_which_kind(tmp_path: Path, granted, wanted, told) -> None:
    ledger = BudgetLedger.create(tmp_path / "x", granted)
    with pytest.raises(ParameterError, match=told):
        ledger.raise_to(wanted, "more")


def test_a_budget_of_nothing_is_not_granted(tmp_path: Path) -> None:
    for nothing in (Pure(0), Concentrated(0)):
        with pytest.raises(ParameterError, match="more than 0"):
            BudgetLedger.create(tmp_path / "x", nothing)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER a BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
        "CREATE VIEW more AS SELECT * FROM entries",
        "CREATE TABLE more (b)",
    ],
)
def test_a_file_that_would_forget_is_refused(tmp_path: Path, statement: str) -> None:
    """Who may write the file, without the key, could make it drop whatever comes."""
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    BudgetLedger.create(tmp_path / "x", Pure(1), key=key)
    _changed(tmp_path / "x", statement)
    with pytest.raises(LedgerError, match="damaged: it holds more than records"):
        BudgetLedger.open(tmp_path / "x", key=key).spend(Pure(1), "again")
