"""What a release file says of itself: its schema, what was done, its promises, and its hash.

A Parquet or Arrow file holds it in its metadata, a text file in the schema file (``.toml``) beside
it. It says nothing that the released rows and the document of the release do not say: no original
value, no level that was not used, nobody's demand.

Releases leave for a file, a folder or a database, by one step that nobody sees half of. What
arrives in a database, or was written by an engine, is held to what the door checked: classes with
the values of every column that a promise reads, each with its number of rows.
"""

from __future__ import annotations

import gzip
import hashlib
import os
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.request import quote
from halfmask.engines.sources import is_address, is_database
from halfmask.engines.staging import reach
from halfmask.errors import InputError, InternalError, ParameterError
from halfmask.metrics.risk.reidentification import RecordedRisk
from halfmask.release.document import AS_IT_WAS, PSEUDONYMS
from halfmask.release.files import (
    holds_metadata,
    text_delimiter,
    text_forms,
    whole_file,
    whole_folder,
    write_table,
)
from halfmask.release.labels import decoded_type, encode_labels
from halfmask.table.columns import Column, abbreviate_names
from halfmask.table.files.rows import normalize
from halfmask.table.files.toml import read_mapping, toml_section
from halfmask.table.moments import form_of
from halfmask.table.read import BLANK, COUNTED, FILE, INSIDE, schema_beside
from halfmask.table.schema import TIES, Schema
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from halfmask.engines.staging import StagedRows
    from halfmask.models.verdict import Model
    from halfmask.release.document import ColumnChange
    from halfmask.release.release import Release
    from halfmask.table.files.rows import Incoming

Groups = tuple[pa.Table, Any]
_ROWS = "hm_rows"
FORMAT = "halfmask.file/1"
_ABOUT = (
    "A release, checked by halfmask before it left. Keep this file beside its rows:\n"
    "halfmask check FILE looks at both again."
)
_NEAR = 1e-9
ABOUT_DRAWN = "Rows or figures that halfmask let leave: how they were made, and which they are."
ABOUT_ANSWER = "The answer of a query, checked by halfmask before it left: whom its rows cover."


def released_schema(
    schema: Schema,
    columns: Sequence[ColumnChange],
    kinds: Mapping[str, pa.DataType],
    *,
    labels: bool = True,
) -> Schema:
    """The schema of the rows that leave: roles, and kinds of columns that still hold values.

    Args:
        schema: that of the rows before.
        columns: what was done to each column.
        kinds: the types of the columns.
        labels: whether a changed column holds labels; else what is no text is still a value.
    """
    entries, person = {}, None
    ties = [one.name for one in columns if one.published and one.action == PSEUDONYMS]
    for change in columns:
        if not change.published:
            continue
        if change.name == schema.person:
            person = change.name  # by its pseudonym
            continue
        known = schema.columns.get(change.name) or Column("identifier")  # a household's pseudonym
        held = kinds[change.name]
        texts = is_text(held.value_type if pa.types.is_dictionary(held) else held)
        # Labels and texts stay texts: 01 and 1 are two codes.
        kept = (change.action == AS_IT_WAS or not labels) and not texts
        kind = known.kind if kept and known.kind != "ordinal" else "nominal"
        entries[change.name] = Column(known.role, kind, weight=known.weight)
    return Schema(entries, person=person, release={TIES: ties} if ties else {})


@dataclass(frozen=True, slots=True)
class FileRecord:
    """What stands in the file.

    Attributes:
        schema: the schema of the released rows.
        facts: how it was made, what was promised, what was done to each column.
        about: what a reader of the file is told first.
    """

    schema: Schema
    facts: Mapping[str, Any]
    about: str = _ABOUT

    @classmethod
    def of(
        cls,
        schema: Schema,
        models: Sequence[Model],
        columns: Sequence[ColumnChange],
        more: Mapping[str, Any],
    ) -> FileRecord:
        """The record of a release: ``more`` are further facts of its document."""
        facts = {
            "format": FORMAT,
            **{name: value for name, value in more.items() if value is not None},
            "promises": [_parameters(model) for model in models],
            **({TIES: list(schema.ties)} if schema.ties else {}),
            "recoding": {one.name: one.action for one in columns if one.published},
        }
        return cls(schema, facts)

    def text(self, digest: Mapping[str, str]) -> str:
        """The text of the schema file, with the hash of the rows that it belongs to."""
        section = toml_section("release", {**self.facts, **digest}, self.about)
        return f"{section}\n{self.schema.to_toml()}"


def _parameters(model: Model) -> dict[str, Any]:
    return {name: value for name, value in model.to_dict().items() if value is not None}


def file_digest(path: str | PathLike[str], *, line_end: bytes | None = None) -> str:
    """SHA-256 of the bytes of a file, unpacked: a text file and its packed twin are the same.

    ``line_end`` stands in place of a line end of two bytes, if it is given.
    """
    if Path(path).suffix.lower() == ".gz" or line_end is not None:
        opened = gzip.open if Path(path).suffix.lower() == ".gz" else open
        with opened(path, "rb") as stream:
            held = stream.read()
        return hashlib.sha256(
            held if line_end is None else held.replace(b"\r\n", line_end)
        ).hexdigest()
    with Path(path).open("rb") as plain:
        return hashlib.file_digest(plain, "sha256").hexdigest()


def rows_digest(rows: pa.Table) -> str:
    """SHA-256 of names, types and values in their order, whatever file or version holds them."""
    found = hashlib.sha256()
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        plain = _plain_array(column)
        kind = plain.type
        found.update(f"{len(name)}:{name}:{kind}:{len(plain)}:".encode())
        found.update(np.packbits(plain.is_valid().to_numpy(zero_copy_only=False)).tobytes())
        for part in _bytes(plain):
            found.update(part)
    return found.hexdigest()


def _plain_array(column: pa.ChunkedArray) -> pa.Array:
    """One plain array: codes, views and runs are how a file holds values, not what they are."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([pc.run_end_decode(c) for c in column.chunks])
    text = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(is_kind(column.type) for is_kind in text):
        column = column.cast(pa.large_string())
    array = column.combine_chunks()
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _bytes(array: pa.Array) -> list[bytes]:
    if pa.types.is_large_string(array.type):
        lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False)
        texts = "".join(pc.fill_null(array, "").to_pylist())
        return [lengths.astype("<i8").tobytes(), texts.encode()]
    if pa.types.is_boolean(array.type) or pa.types.is_integer(array.type):
        return [_numbers(array, "<i8" if not pa.types.is_uint64(array.type) else "<u8")]
    if pa.types.is_floating(array.type):
        return [_numbers(array, "<f8")]
    return [repr(array.to_pylist()).encode()]


def _numbers(array: pa.Array, kind: str) -> bytes:
    filled = pc.fill_null(array, False if pa.types.is_boolean(array.type) else 0)
    return bytes(filled.to_numpy(zero_copy_only=False).astype(kind).tobytes())


def write_release(
    rows: pa.Table,
    path: str | PathLike[str],
    record: FileRecord,
    given: Mapping[str, Incoming] | None = None,
) -> None:
    """Write released rows with what they say of themselves, in the file or beside it.

    A text file is written as that was of which ``given`` tells, and its record says so.

    Raises:
        InputError: the file cannot be written, or a schema file of another table is in the way.
    """
    if holds_metadata(path):
        inside = record.text({"sha256_of_rows": rows_digest(rows)})
        write_table(rows, path, inside=inside.encode())
        return
    require_free(path)
    given = given or {}
    write_table(rows, path, given=given)
    columns = dict(record.schema.columns)
    for name, texts in text_forms(rows, given).items():
        was, column = given[name], columns.get(name, Column("other"))
        if was.form == ",":
            columns[name] = replace(column, decimal=was.form)
        elif was.declared or form_of(pc.unique(texts).drop_null()) == was.form:
            columns[name] = replace(column, format=was.form)
        else:  # rows that do not leave told day from month: without them these are texts
            columns[name] = replace(column, kind="nominal")
    split = text_delimiter(path, given)
    schema = replace(record.schema, columns=columns, delimiter=None if split in ",\t" else split)
    record = replace(record, schema=schema)
    with whole_file(schema_beside(Path(path))) as temporary:
        temporary.write_text(record.text({"sha256": file_digest(path)}), encoding="utf-8")


def write_aside_file(rows: StagedRows, path: str | PathLike[str], record: FileRecord) -> None:
    """Write rows that are elsewhere to a Parquet file, some at a time, whole or not at all."""
    import pyarrow.parquet as pq

    reader = rows.batches()
    kind = reader.schema.with_metadata({INSIDE: record.text({}).encode()})
    with whole_file(path) as temporary:
        with pq.ParquetWriter(temporary, kind) as writer:
            for batch in reader:
                writer.write_batch(batch.cast(kind) if batch.schema != kind else batch)
        sync(temporary)
        reach("before publishing")
    reach("published")


def write_folder(
    rows: pa.RecordBatchReader, path: str | PathLike[str], record: FileRecord | None
) -> None:
    """Write rows as a folder of Parquet files, which appears whole or not at all.

    Raises:
        InputError: something that is no release of ours is in the way, or it cannot be written.
    """
    import pyarrow.parquet as pq

    target = Path(path)
    require_folder(target)
    inside = {} if record is None else {INSIDE: record.text({}).encode()}
    kind = rows.schema.with_metadata(inside)
    with whole_folder(target) as folder:
        number, writer, held = 0, None, 0
        for batch in rows:
            if writer is None or held >= _PIECE:
                if writer is not None:
                    writer.close()
                writer, held = pq.ParquetWriter(folder / f"part-{number:05}.parquet", kind), 0
                number += 1
            writer.write_batch(batch.cast(kind))
            held += batch.num_rows
        if writer is None:
            writer = pq.ParquetWriter(folder / "part-00000.parquet", kind)
        writer.close()
        for piece in folder.iterdir():
            sync(piece)
        reach("before publishing")
    reach("published")


def write_pieces(rows: StagedRows, path: str | PathLike[str], record: FileRecord) -> bool:
    """Have the engine write such a folder itself, and count its files before they are there.

    Beside them lies a file without rows that holds the record and names them.

    Raises:
        InternalError: the files hold other rows than those that were checked; nothing leaves.
    """
    import pyarrow.parquet as pq

    if rows.groups is None or not rows.writes_pieces:
        return False
    target = Path(path)
    require_folder(target)
    names = rows.groups[0].column_names
    with whole_folder(target) as folder:
        require_groups(rows.groups, rows.write_pieces(folder, names))
        pieces = sorted(one.name for one in folder.iterdir())
        kind = pq.read_schema(folder / pieces[0]).remove_metadata()
        inside = {INSIDE: record.text({}).encode(), _NAMED: "\n".join(pieces).encode()}
        pq.write_table(kind.empty_table().replace_schema_metadata(inside), folder / _RECORD)
        for piece in folder.iterdir():
            sync(piece)
        reach("before publishing")
    reach("published")
    return True


_RECORD, _NAMED = "halfmask.parquet", b"halfmask-pieces"
_PIECE = 5_000_000  # rows of one file of a folder


def require_folder(target: Path) -> None:
    """Refuse a folder that holds anything but a release of ours, or whose place is not there."""
    import pyarrow.parquet as pq

    if not target.parent.is_dir():
        raise InputError(f"The folder {str(target.parent)!r} does not exist: make it first.")
    if not target.exists():
        return
    ours = target.is_dir()
    named: set[str] = set()
    for piece in sorted(target.iterdir()) if ours else ():  # the one that names others comes first
        try:
            held = pq.read_schema(piece).metadata or {}
        except (OSError, pa.ArrowException):
            ours = False
            break
        ours = ours and (INSIDE in held or piece.name in named)
        named |= set(held.get(_NAMED, b"").decode().splitlines()) if INSIDE in held else set()
    if not ours:
        raise InputError(
            f"{str(target)!r} holds something that is no release of ours: name another folder."
        )


def sync(path: Path) -> None:
    """Have a file's bytes on the disk before its name is given."""
    with path.open("rb+") as stream:
        os.fsync(stream.fileno())


def require_free(path: str | PathLike[str]) -> None:
    """Refuse to write over a schema file that belongs to another table.

    Raises:
        InputError: there is one, and no release wrote it.
    """
    if holds_metadata(path):
        return
    place = schema_beside(Path(path))
    if place.exists() and "release" not in read_mapping(place):
        raise InputError(
            f"{place.name!r} is the schema file of another table, and would be written over by "
            f"what the release says of itself: give {Path(path).name!r} another name."
        )


def matches_record(path: str | PathLike[str], facts: Mapping[str, Any]) -> bool | None:
    """Whether the rows are those that were released; None where the record holds no hash.

    Lines of a text file that end otherwise than when it was written, as programs and version
    control leave them, are the same lines.
    """
    if "sha256" in facts:
        ends = (None, b"\n")
        return any(file_digest(path, line_end=end) == facts["sha256"] for end in ends)
    if "sha256_of_rows" in facts:
        return bool(rows_digest(_stored_rows(Path(path))) == facts["sha256_of_rows"])
    return None


def recorded_risk(
    schema: Schema, quasi: Sequence[str], *, least: int | None = None, mean: float = 0.0
) -> RecordedRisk | None:
    """What the record of a release file says of its risk; None where it cannot be about it.

    The rows must be those that were released and be looked at by the same quasi-identifiers. As
    nobody has less than a row, a record that promises more than rows give is not believed.

    Args:
        schema: that of the file, as it was read.
        quasi: the columns that are looked at.
        least: rows in the smallest class, where they were counted.
        mean: classes by rows, the least that the mean risk can be.
    """
    facts = schema.release
    if FILE not in facts or set(facts.get(COUNTED, ())) != set(quasi):
        return None
    smallest, highest, risk = (facts.get(n) for n in ("smallest", "highest_risk", "mean_risk"))
    if not isinstance(smallest, int) or not isinstance(highest, float | int) or smallest < 1:
        return None
    if not isinstance(risk, float | int) or abs(highest * smallest - 1) > _NEAR:
        return None
    if (least is not None and smallest > least) or not mean - _NEAR <= risk <= highest + _NEAR:
        return None
    if not matches_record(facts[FILE], facts):
        return None
    return RecordedRisk(smallest, float(highest), float(risk))


def other_roles_words(schema: Schema, quasi: Sequence[str]) -> list[str]:
    """What a reader should know of a release that was made with other quasi-identifiers.

    Args:
        schema: that of the release's file, as it was read.
        quasi: the columns that are looked at.
    """
    counted = [str(name) for name in schema.release.get(COUNTED, ())]
    risk = None if set(counted) == set(quasi) else recorded_risk(schema, counted)
    if risk is None or not counted:
        return []
    more = [name for name in quasi if name not in counted]
    here = f"Here {abbreviate_names(more)} may be known too" if more else "Here fewer columns count"
    return [
        f"The release was made with other quasi-identifiers: {abbreviate_names(counted)}. By these "
        f"its smallest class holds {risk.smallest:,} people, and the highest risk is "
        f"{risk.highest_risk:.1%}, as check and assess say. {here}, by the schema of the original: "
        "name the same columns (--quasi) to compare the release as it was made."
    ]


def ties_words(schema: Schema) -> str:
    """What a reader should know of a release whose tokens tie rows together."""
    return (
        f"The tokens in {', '.join(schema.ties)} tie rows together: classes are of people all of "
        "whose rows are alike, as when it was released."
    )


def recorded_blanks(schema: Schema) -> tuple[str, ...]:
    """The columns in which a missing cell is a suppressed one, as the record of a file says.

    Nothing where the rows are not those that were released.
    """
    facts = schema.release
    said = facts.get(BLANK, ())
    if not said or not isinstance(said, list | tuple) or FILE not in facts:
        return ()
    return tuple(map(str, said)) if matches_record(facts[FILE], facts) else ()


def _stored_rows(path: Path) -> pa.Table:
    if path.suffix.lower() == ".parquet":
        import pyarrow.parquet as pq

        return pq.read_table(path)
    import pyarrow.feather as feather

    return feather.read_table(str(path))


def is_folder(path: str | PathLike[str]) -> bool:
    """Whether a name asks for a folder of files."""
    return isinstance(path, str) and path.endswith(("/", os.sep)) and not is_address(path)


def is_server(path: str | PathLike[str]) -> bool:
    """Whether a name is the address of a database server."""
    return is_address(path) and not is_database(path)


def is_lake(path: str | PathLike[str]) -> bool:
    """Whether a name is that of a kind of table which a Spark session keeps."""
    return path in ("delta", "iceberg")


def require_target(path: str | PathLike[str], table: str | None) -> bool:
    """Look at a folder or a table before work begins; whether the name asks for one.

    Raises:
        InputError: something else is in the way, or it may not be made.
    """
    if is_server(path):
        from halfmask.engines.postgres import require_place

        require_place(str(path), _require_name(table))
        return True
    if is_database(path):
        from halfmask.engines.duckdb.publication import require_file_place

        require_file_place(str(path), _require_name(table))
        return True
    if is_lake(path):
        _require_name(table)
        return True
    if table is not None:
        raise ParameterError("table", table, "nothing: only a database has tables")
    if is_folder(path):
        require_folder(Path(path))
        return True
    return False


def write_elsewhere(release: Release, path: str | PathLike[str], table: str | None) -> bool:
    """Write to a folder or a database, whole or not at all; whether the name asks for one."""
    if not require_target(path, table):
        return False
    record = None if release.schema is None else release.record()
    aside = release._aside  # noqa: SLF001 - the door gave it to the release
    if is_folder(path):
        if aside is None or record is None or not write_pieces(aside, str(path), record):
            write_folder(release.to_batches(), str(path), record)
        return True
    if record is None or release.schema is None:
        raise InputError("Only the release of a table goes to a database: write a file instead.")
    if aside is not None and aside.groups is not None:
        expected = aside.groups
    else:
        columns = release.schema.columns
        told = [n for n, one in columns.items() if one.role in ("quasi", "sensitive")]
        expected = count_groups(release.to_arrow(), told)

    def check(cursor: Any, name: str) -> None:
        require_groups(*_both_sides(cursor, name, expected, len(release)))

    place, name, text = str(path), _require_name(table), record.text({})
    if is_lake(path):
        if aside is None or not hasattr(aside.connection, "publish"):
            raise InputError(
                f"A {path} table is written by the Spark session that holds the rows: read them "
                "with engine='spark', or write a folder of Parquet files."
            )
        engine = aside.connection
        engine.publish(place, name, text, partial(_require_arrival, aside, expected=expected))
        return True
    if is_database(path):
        from halfmask.engines.duckdb.publication import publish_in_file

        if aside is not None and hasattr(aside.connection, "leave"):
            aside.connection.leave()
        publish_in_file(place, name, text, release.to_batches(), check)
        return True
    from halfmask.engines.postgres import publish_table

    inside = aside is not None and aside.address == str(path)
    rows = None if inside else release.to_batches()
    publish_table(
        place,
        name,
        release._arrow.schema if rows is None else rows.schema,  # noqa: SLF001
        text,
        rows=rows,
        writer=aside.connection if inside and aside is not None else None,
        check=check,
    )
    return True


def _require_arrival(aside: StagedRows, name: str, expected: Groups) -> None:
    """Demand that a table which the engine made holds the rows that were checked."""
    require_groups(expected, aside.count(expected[0].column_names, name))


def _both_sides(cursor: Any, name: str, expected: Groups, rows: int) -> tuple[Groups, Groups]:
    """The groups that should be in a new table, and those that are, by a count of its rows.

    Raises:
        InternalError: there are more or fewer rows, or values of another type.
    """
    from halfmask.engines.postgres import known_kind

    told = [n for n in expected[0].column_names if known_kind(expected[0].schema.field(n).type)]
    shown = ", ".join([*map(quote, told), "COUNT(*)"])
    groups = f" GROUP BY {', '.join(map(quote, told))}" if told else ""
    cursor.execute(f"SELECT {shown} FROM {quote(name)}{groups}")  # noqa: S608 - quoted
    found = cursor.fetchall()
    counts = [row[-1] for row in found]
    try:
        kinds = [decoded_type(expected[0].schema.field(n).type) for n in told]
        arrived = {n: pa.array([row[i] for row in found], kinds[i]) for i, n in enumerate(told)}
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        raise InternalError(
            "Other values arrived than were released; nothing was released."
        ) from None
    if sum(counts) != rows:
        raise InternalError("Other rows arrived than were released; nothing was released.")
    return (expected[0].select(told), expected[1]), (pa.table(arrived), counts)


def _require_name(table: str | None) -> str:
    if not table:
        told = "the name of the table to write in the database (--output-table)"
        raise ParameterError("table", table, told)
    return table


def count_groups(rows: pa.Table, columns: Sequence[str]) -> Groups:
    """The combinations of ``columns`` in rows that are in memory, and how many rows hold each."""
    found = rows.select(list(columns)).group_by(list(columns)).aggregate([([], "count_all")])
    return found.select(list(columns)), found["count_all"].to_numpy()


def require_groups(expected: Groups, arrived: Groups) -> None:
    """Demand that the same groups arrived, each with as many rows.

    Raises:
        InternalError: some group differs; nothing leaves.
    """
    both = pa.concat_tables([_as_texts(*expected), _as_texts(arrived[0], -np.asarray(arrived[1]))])
    sums = both.group_by(expected[0].column_names).aggregate([(_ROWS, "sum")])
    wrong = int(np.count_nonzero(sums[f"{_ROWS}_sum"].to_numpy()))
    if wrong:
        raise InternalError(
            f"Other rows arrived than those that were checked: {wrong} groups differ; nothing was "
            "released."
        )


def _as_texts(groups: pa.Table, counts: Any) -> pa.Table:
    """Groups as the texts of their values: types differ between places, what is read does not."""
    plain = normalize(groups, ()) if groups.num_rows else groups
    columns = {}
    for name in plain.column_names:
        text = encode_labels(plain[name])
        text = text.cast(text.type.value_type) if pa.types.is_dictionary(text.type) else text
        columns[name] = text.cast(pa.string())
    return pa.table({**columns, _ROWS: pa.array(np.asarray(counts, dtype=np.int64))})
