"""What all tests share: where the real tables stand, and how much hypothesis tries."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import subprocess
import tempfile
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from effort import THOROUGH, examples
from hypothesis import settings

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Iterator

# Compiled kernels make the first call slow.
settings.register_profile("halfmask", deadline=None, max_examples=examples(60))
settings.load_profile("halfmask")

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
DATA = Path(__file__).parents[2] / "shared" / "data"
ADULT_COLUMNS = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark comes first: one worker begins there, so that one session serves the whole run."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)


# What is loaded stays: garbage is not looked for in it as it is loaded, nor before the very end.
gc.disable()
atexit.register(gc.unfreeze)


def pytest_collection_finish() -> None:
    """Look for garbage in what the tests make only."""
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="module", autouse=True)
def small_guarantees(request: pytest.FixtureRequest) -> Iterator[None]:
    """Tables small enough to check by hand are asked with k = 1 and 2: the floor is put there.

    Pages and attacks see the floor that users have.
    """
    places = [import_module(f"halfmask.{n}") for n in ("query.run", "protocol.common_schema")]
    usual = places[0].FLOOR
    for place in places:
        place.FLOOR = usual if {"attacks", "docs"} & set(request.path.parts) else 1
    yield
    for place in places:
        place.FLOOR = usual


@pytest.fixture
def generous_umask() -> Iterator[None]:
    """A process that lets everybody read and write what it makes."""
    before = os.umask(0o000)
    yield
    os.umask(before)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real tables; the test skips where there is none."""
    if not DATA.is_dir():
        pytest.skip("the folder ../shared/data with the real tables is not there")
    return DATA


@pytest.fixture(scope="session")
def adult(data: Path) -> Path:
    """Adult as 30,162 complete records of nine columns, separated by semicolons."""
    return data / "arx" / "adult.csv"


def _read_adult(path: Path, sensitive: tuple[str, ...]) -> hm.Table:
    columns = {
        name: {
            "role": "sensitive" if name in sensitive else "quasi",
            "hierarchy": {"csv": f"adult_hierarchy_{name}.csv"},
        }
        for name in ADULT_COLUMNS
    }
    return hm.read(path, hm.Schema.from_dict({"columns": columns}, folder=path.parent))


@pytest.fixture(scope="session")
def adult_table(adult: Path) -> hm.Table:
    """Adult with all nine columns as quasi-identifiers, and their hierarchies."""
    return _read_adult(adult, ())


@pytest.fixture(scope="session")
def adult_occupation(adult: Path) -> hm.Table:
    """Adult with eight quasi-identifiers and occupation sensitive, and their hierarchies."""
    return _read_adult(adult, ("occupation",))


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a private PostgreSQL server; the test skips where there is none."""
    folder = next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin"))), None)
    if folder is None:
        pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    place = Path(tempfile.mkdtemp(prefix="halfmask-postgres-"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        # The server refuses to run as root.
        place.chmod(0o755)
        shutil.chown(place, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]

    def run(*command: str) -> None:
        subprocess.run([*as_user, *command], check=True, capture_output=True, cwd="/")  # noqa: S603

    run(
        str(folder / "initdb"),
        "-D",
        f"{place}/data",
        "-U",
        "halfmask",
        "--no-sync",
        "--auth=trust",
        "-E",
        "UTF8",
        "--locale=C",
    )
    options = f"-c listen_addresses='' -c unix_socket_directories={place} -c fsync=off"
    run(
        str(folder / "pg_ctl"),
        "-D",
        f"{place}/data",
        "-w",
        "-l",
        f"{place}/log",
        "-o",
        options,
        "start",
    )
    try:
        yield f"postgresql://halfmask@/postgres?host={place}"
    finally:
        run(str(folder / "pg_ctl"), "-D", f"{place}/data", "-m", "immediate", "stop")
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def spark() -> Iterator[object]:
    """One local Spark session for the whole run; the test skips where there is none."""
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed (halfmask[spark])")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17")
    # It serves Spark Connect too, where its client is installed.
    served = find_spec("grpc_status") is not None
    plugin = "org.apache.spark.sql.connect.SparkConnectPlugin" if served else ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session = (
            sql.SparkSession.builder.master("local[2]")
            .config("spark.plugins", plugin)
            .config("spark.connect.grpc.binding.address", "127.0.0.1")
            .config("spark.connect.grpc.binding.port", "0")
            .appName("halfmask-tests")
            .config("spark.ui.enabled", "false")
            .config("spark.sql.shuffle.partitions", "2")
            # Queries are many and small: compiling and planning them well costs more than it saves.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .config("spark.sql.codegen.wholeStage", str(THOROUGH).lower())
            .config("spark.sql.adaptive.enabled", str(THOROUGH).lower())
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.log.level", "ERROR")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


@pytest.fixture(scope="module")
def browser():
    """Debian's chromium, or the one that CHROMIUM names."""
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=chromium, args=QUIET)
        yield started
        started.close()
