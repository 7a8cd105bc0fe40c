"""A packed file is looked into before it is read: what would not fit is refused, and said."""

from __future__ import annotations

import bz2
import gzip
import io
import resource
import tracemalloc

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from serving import CANARY, PEOPLE

from halfmask.errors import InputError, TooLargeError
from halfmask.service.unpacked import require_unpacked

MANY = 3_000_000


def parquet(table, **options):
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def arrow(table):
    out = io.BytesIO()
    feather.write_feather(table, out, compression="zstd")
    return out.getvalue()


ROWS = pa.table(
    {"age": pa.array([30] * MANY), "city": pa.array([CANARY] * MANY).dictionary_encode()}
)
TEXT = b"age,city\n" + f"30,{CANARY}\n".encode() * 300_000
LARGE = {
    "people.csv.gz": gzip.compress(TEXT),
    "people.csv.bz2": bz2.compress(TEXT),
    "people.parquet": parquet(ROWS, compression="zstd"),
    "long.parquet": parquet(pa.table({"city": pa.array(["x" * 50_000] * 100)})),
    "people.arrow": arrow(ROWS.slice(0, 300_000)),
}


@pytest.mark.parametrize("name", LARGE)
def test_what_unpacks_beyond_the_limit_is_refused(opened, name):
    before = opened.call("GET", "/api/state").json()["table"]
    assert len(LARGE[name]) < 100_000
    failed = opened.upload(LARGE[name], name)
    assert failed["code"] == "service.too_large"
    assert "more than 1 MB" in failed["message"]
    assert "--unpacked-limit" in failed["message"]
    assert "--engine duckdb" in failed["message"]
    assert CANARY not in str(failed)
    assert opened.call("GET", "/api/state").json()["table"] == before
    assert len(list(opened.space.folder.iterdir())) == 1


SMALL = {
    "people.csv": PEOPLE.encode(),
    "people.csv.gz": gzip.compress(PEOPLE.encode()),
    "people.parquet": parquet(ROWS.slice(0, 8)),
    "people.arrow": arrow(ROWS.slice(0, 8)),
}


@pytest.mark.parametrize("name", SMALL)
def test_what_fits_is_read(opened, name):
    assert opened.upload(SMALL[name], name)["rows"] == 8


def test_looking_into_a_file_takes_little_memory(tmp_path):
    place = tmp_path / "people.csv.gz"
    with gzip.open(place, "wb", compresslevel=1) as out:
        for _ in range(300):
            out.write(b"x" * 999_999 + b"\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    with pytest.raises(TooLargeError, match="250 MB"):
        require_unpacked(place, 250_000_000)
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 60_000  # kilobytes


def test_a_limit_is_met_to_the_byte(tmp_path):
    place = tmp_path / "people.csv.gz"
    place.write_bytes(gzip.compress(PEOPLE.encode()))
    require_unpacked(place, len(PEOPLE))
    with pytest.raises(TooLargeError):
        require_unpacked(place, len(PEOPLE) - 1)


@pytest.mark.parametrize("name", LARGE)
def test_a_damaged_file_is_said_to_be_that(tmp_path, name):
    place = tmp_path / name
    place.write_bytes(LARGE[name][: len(LARGE[name]) // 2])
    with pytest.raises(InputError):
        require_unpacked(place, 10**12)
