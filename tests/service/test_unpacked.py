"""A packed file is looked into before it is read: what would not fit is refused, and said."""

from __future__ import annotations

import bz2
import gzip
import io
import resource
import tracemalloc
from functools import cache

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from serving import CANARY, PEOPLE

from halfmask.errors import InputError, TooLargeError
from halfmask.service.files import require_unpacked

MANY = 3_000_000


def parquet(table, **options):
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def arrow(*columns):
    """A file of columns that stand there as they are given."""
    table = pa.table(list(columns), names=[f"c{i}" for i in range(len(columns))])
    out = io.BytesIO()
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table)
    return out.getvalue()


def feathered(table):
    out = io.BytesIO()
    feather.write_feather(table, out, compression="zstd")
    return out.getvalue()


def shared_views(rows, text):
    """A column of texts that all point to the same bytes."""
    one = pa.array([text], pa.string_view()).buffers()
    views = pa.py_buffer(one[1].to_pybytes()[:16] * rows)
    return pa.Array.from_buffers(pa.string_view(), rows, [None, views, *one[2:]])


def people(rows):
    """So many rows that are all alike."""
    cities = pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), [CANARY])
    return pa.table({"age": pa.repeat(30, rows), "city": cities})


# Made where they are used: what all workers hold from the start, every process they start copies.
TEXT = b"age,city\n" + f"30,{CANARY}\n".encode() * 300_000
LARGE = {
    "people.csv.gz": lambda: gzip.compress(TEXT),
    "people.csv.bz2": lambda: bz2.compress(TEXT),
    "people.parquet": lambda: parquet(people(MANY), compression="zstd"),
    "long.parquet": lambda: parquet(pa.table({"city": pa.array(["x" * 50_000] * 100)})),
    "people.arrow": lambda: feathered(people(300_000)),
}


@cache
def large(name):
    return LARGE[name]()


@pytest.mark.parametrize("name", LARGE)
def test_what_unpacks_beyond_the_limit_is_refused(opened, name):
    before = opened.call("GET", "/api/state").json()["table"]
    assert len(large(name)) < 100_000
    failed = opened.upload(large(name), name)
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
    "people.parquet": parquet(people(8)),
    "people.arrow": feathered(people(8)),
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


HUGE = {
    "large": ("x" * 50_000, pa.large_string()),
    "views": ("x" * 50_000, pa.string_view()),
    "bytes": (b"x" * 50_000, pa.binary(50_000)),
    "lists": (["x" * 50_000], pa.list_(pa.string())),
}


@pytest.mark.parametrize("name", HUGE)
def test_texts_of_a_parquet_file_are_not_unpacked_to_be_counted(tmp_path, name):
    place = tmp_path / "people.parquet"
    value, kind = HUGE[name]
    pq.write_table(pa.table({"city": pa.array([value] * 2000, kind)}), place)
    pool = pa.system_memory_pool()
    former = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises((InputError, TooLargeError)) as caught:
            require_unpacked(place, 50_000_000)
    finally:
        pa.set_memory_pool(former)
    assert pool.max_memory() < 20_000_000
    assert ("cannot be used" in str(caught.value)) is (name in ("bytes", "lists"))


LONG = "x" * 5000
# Rows that are stored once, or not at all.
SHARED = {
    "no values": arrow(pa.nulls(1_000_000)),
    "a run of numbers": arrow(pa.RunEndEncodedArray.from_arrays(pa.array([500_000]), [7])),
    "a run of texts": arrow(pa.RunEndEncodedArray.from_arrays(pa.array([1000]), [LONG])),
    "a run of a dictionary's text": arrow(
        pa.RunEndEncodedArray.from_arrays(pa.array([1000]), pa.array([LONG]).dictionary_encode())
    ),
    "a large dictionary": arrow(
        pa.DictionaryArray.from_arrays([0] * 1000, pa.array([LONG, "y"], pa.large_string()))
    ),
    "a dictionary of numbers": arrow(
        pa.DictionaryArray.from_arrays(pa.array([0] * 400_000, pa.int8()), pa.array([7, 8]))
    ),
    "views of one text": arrow(shared_views(1000, LONG)),
}


@pytest.mark.parametrize("name", SHARED)
def test_rows_that_share_their_bytes_are_counted_one_by_one(tmp_path, name):
    place = tmp_path / "people.arrow"
    place.write_bytes(SHARED[name])
    with pytest.raises(TooLargeError):
        require_unpacked(place, 2_000_000)
    require_unpacked(place, 10_000_000)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_texts_are_counted_alike_however_they_are_stored(tmp_path, kind):
    place = tmp_path / "people.arrow"
    place.write_bytes(arrow(pa.array(["a" * 50, None, "b" * 5] * 10_000, kind)))
    require_unpacked(place, 1_100_000)
    with pytest.raises(TooLargeError):
        require_unpacked(place, 500_000)


@pytest.mark.parametrize("name", LARGE)
def test_a_damaged_file_is_said_to_be_that(tmp_path, name):
    place = tmp_path / name
    place.write_bytes(large(name)[: len(large(name)) // 2])
    with pytest.raises(InputError):
        require_unpacked(place, 10**12)
