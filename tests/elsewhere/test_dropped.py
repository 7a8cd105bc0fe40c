"""A connection that is dropped at any point of any verb: one sentence, and nothing is published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from effort import ends
from places import SCHEMA, load, people

import halfmask as hm
from halfmask.engines.postgres import Postgres

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PLAIN = {"columns": {**SCHEMA["columns"], "k_i": "drop", "name": "drop"}}
MODELS = (hm.KAnonymity(3), hm.LDiversity(2, "ill"))
# What the engine is asked; each is a point at which the server may be gone.
POINTS = ("columns", "run", "bring", "write_rows", "stream", "settle", "begin", "keep")
DOMAINS: dict[str, Any] = {"sex": ["f", "m", "F"], "ill": ["flu", "gout", "o'hara", None]}
DROPPED = dict.fromkeys((*SCHEMA["columns"], "k_i"), "drop")
PUBLIC = {"columns": DROPPED | dict.fromkeys(DOMAINS, "quasi")}


class Server:
    """A database whose connection is dropped before its n-th use."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.left = 0

    def pass_point(self, engine: Postgres) -> None:
        self.left -= 1
        if self.left == 0:
            backend = engine._connection.info.backend_pid
            with psycopg.connect(self.address, autocommit=True) as connection:
                connection.execute("SELECT PG_TERMINATE_BACKEND(%s)", [backend])

    def read(self, schema: Any = PLAIN) -> hm.Table:
        return hm.read(self.address, schema, table="dropped")

    def publish(self) -> None:
        settings = {"method": "optimal", "suppression": 0.1}
        with hm.anonymize(self.read(), *MODELS, **settings) as release:
            release.write(self.address, table="dropped_public")

    def published(self) -> bool:
        with psycopg.connect(self.address) as connection:
            (found,) = connection.execute("SELECT TO_REGCLASS('dropped_public')").fetchone() or ()
        return found is not None


@pytest.fixture
def server(postgres: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    load(postgres, "dropped", people(120))
    found = Server(postgres)

    def watch(usual: Callable[..., Any]) -> Callable[..., Any]:
        def ask(engine: Postgres, *given: Any, **named: Any) -> Any:
            found.pass_point(engine)
            return usual(engine, *given, **named)

        return ask

    for name in POINTS:
        monkeypatch.setattr(Postgres, name, watch(getattr(Postgres, name)))
    yield found
    with psycopg.connect(postgres) as connection:
        connection.execute("DROP TABLE IF EXISTS dropped, dropped_public")


VERBS: dict[str, Callable[[Server], Any]] = {
    "describe": lambda s: hm.describe(s.read()),
    "check": lambda s: hm.check(s.read(), *MODELS),
    "risks": lambda s: hm.row_risks(s.read()).to_arrow(),
    "query": lambda s: hm.query(
        s.read(), "SELECT sex, AVG(pay) AS pay FROM the_table GROUP BY sex GUARANTEE k = 5, l = 2"
    ),
    "anonymize": lambda s: hm.anonymize(s.read(), *MODELS, method="mondrian").to_arrow(),
    "write": lambda s: s.publish(),
    "recode": lambda s: hm.Recoding.of(
        hm.read(people(), PLAIN), [{"age": 3, "sex": 0, "zip": 3}]
    ).apply(s.read(), *MODELS, suppression=0.9),
    "mask": lambda s: hm.mask(s.read(), "round age base=5").to_arrow(),
    "tabulate": lambda s: hm.tabulate(s.read(), ["sex", "ill"], threshold=3),
    "cocluster": lambda s: hm.cocluster(s.read(), ["sex", "ill"]),
    "private": lambda s: hm.synthesize(
        s.read(PUBLIC), "histogram", epsilon=1.0, domains=DOMAINS, rows=10
    ),
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_dropped_connection_is_one_sentence(server: Server, verb: str) -> None:
    server.left = 10**6
    VERBS[verb](server)
    points = 10**6 - server.left
    assert server.published() == (verb == "write")
    if verb == "write":
        with psycopg.connect(server.address) as connection:
            connection.execute("DROP TABLE dropped_public")
    for point in ends(range(1, points + 1)):
        server.left = point
        with pytest.raises(hm.errors.EngineError) as refused:
            VERBS[verb](server)
        assert len(str(refused.value).splitlines()) == 1
        assert not server.published()
