"""Rows as files and frames, of their own types; files appear whole or not at all, or privately."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import EngineUnavailableError, InputError, usable_path
from halfmask.ownership import make_private
from halfmask.release.document import AS_IT_WAS
from halfmask.release.labels import decode_labels
from halfmask.table.files.rows import Incoming
from halfmask.table.moments import moments_by
from halfmask.table.read import INSIDE, form_of_texts, is_declared
from halfmask.table.values import dictionary_of, infer_type, is_text, sort_dictionary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from os import PathLike

    from halfmask.engines.staging import StagedRows
    from halfmask.release.document import ColumnChange
    from halfmask.table.table import Table


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a temporary path beside ``path`` and rename it once the body has succeeded.

    Example:
        >>> with whole_file("notes.txt") as temporary:  # doctest: +SKIP
        ...     temporary.write_text("all of it")
    """
    target = usable_path(path)
    if not target.parent.is_dir():
        raise InputError(
            f"The folder {str(target.parent)!r} does not exist: make it first, or write elsewhere."
        )
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder: give the name of a file.")
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    try:
        yield temporary
        os.replace(temporary, target)
    except OSError as error:
        raise InputError(
            f"Cannot write {str(target)!r}: {error.strerror or 'no access'}."
        ) from error
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """Give a new folder beside ``target`` and put it there once the body has succeeded.

    A folder that is there is exchanged with the new one in one step where the system can (Linux);
    elsewhere it is renamed first, so that for a moment there is none.
    """
    fresh = target.with_name(f".{target.name}.{secrets.token_hex(6)}.part")
    old = target.with_name(f".{target.name}.{secrets.token_hex(6)}.old")
    try:
        fresh.mkdir()
        yield fresh
        if not target.exists():
            fresh.rename(target)
        elif not _exchange(fresh, target):
            target.rename(old)
            fresh.rename(target)
    except OSError as error:
        why = error.strerror or "no access"
        raise InputError(f"Cannot write {str(target)!r}: {why}. Nothing was released.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(first: Path, second: Path) -> bool:
    """Exchange the names of two folders in one step; False where the system cannot."""
    import ctypes

    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    done: int = rename(here, os.fsencode(first), here, os.fsencode(second), exchange)
    return done == 0


@contextmanager
def private_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Like ``whole_file``, of a file that its owner alone may read, from its first byte on."""
    with whole_file(path) as temporary:
        make_private(temporary)
        yield temporary


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Keep other processes of ours from changing a file in ``folder`` at the same time."""
    try:
        import fcntl

        place = os.open(folder, os.O_RDONLY)
    except (ImportError, OSError):  # no such system, or writing will say what is wrong
        yield
        return
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_KEPT = (",", ";", "|")  # a .csv with any other is taken for something else
_KINDS = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet", ".feather", ".arrow")


def write_table(
    table: pa.Table,
    path: str | PathLike[str],
    file: Callable[[str | PathLike[str]], AbstractContextManager[Path]] = whole_file,
    inside: bytes | None = None,
    given: Mapping[str, Incoming] | None = None,
) -> None:
    """Write ``table`` to ``path``, whole or not at all; no release goes to a ``private_file``.

    ``inside`` is what a file that can hold it says of itself; a text file is written as that was
    of which ``given`` tells.
    """
    kind = table_kind(path)
    table = _each(table, _without_runs)
    if inside is not None:
        table = table.replace_schema_metadata({INSIDE: inside})
    with file(path) as temporary:
        if kind == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, temporary)
        elif kind in (".feather", ".arrow"):
            import pyarrow.feather as feather

            feather.write_feather(table, str(temporary))
        else:
            forms = text_forms(table, given or {})
            texts = [forms.get(name, table[name]) for name in table.column_names]
            split = text_delimiter(path, given or {})
            _write_text(pa.table(texts, names=table.column_names), temporary, kind, split)


def write_batches(
    rows: StagedRows,
    path: str | PathLike[str],
    file: Callable[[str | PathLike[str]], AbstractContextManager[Path]],
) -> None:
    """Write rows that are elsewhere, a Parquet file some at a time; no release goes this way."""
    if table_kind(path) != ".parquet":
        write_table(rows.read(), path, file)
        return
    import pyarrow.parquet as pq

    reader = rows.batches()
    with file(path) as temporary, pq.ParquetWriter(temporary, reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


def text_delimiter(path: str | PathLike[str], given: Mapping[str, Incoming]) -> str:
    """What stands between the fields of a text file."""
    kind = table_kind(path).removesuffix(".gz")
    known = next((was.delimiter for was in given.values()), ",")
    return known if kind == ".csv" and known in _KEPT else _DELIMITERS[kind]


def text_forms(table: pa.Table, given: Mapping[str, Incoming]) -> dict[str, pa.ChunkedArray]:
    """The columns of numbers and dates that a text file writes as they came in, so written.

    A decimal comma is written where the values that leave need one: whether other rows had a
    fraction is not told.
    """
    found = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        form = given[name].form if name in given else ""
        if form == "," and has_fraction(column):
            found[name] = pc.replace_substring(_in_full(column.cast(pa.string())), ".", ",")
        elif form and (pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)):
            texts = pc.strftime(column, format=form)
            back = moments_by(texts.combine_chunks(), form)
            if back.equals(column.cast(back.type, safe=False).combine_chunks()):
                found[name] = texts  # nothing is lost in this form
    return found


def has_fraction(column: pa.ChunkedArray) -> bool:
    """Whether some number is not whole."""
    if not pa.types.is_floating(column.type):
        return False
    parts = pc.and_(pc.is_finite(column), pc.not_equal(column, pc.floor(column)))
    return bool(pc.any(parts).as_py())


def _in_full(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers without exponents, which nobody reads beside a decimal comma."""
    short = pc.unique(texts.filter(pc.match_substring(texts, "e"))).drop_null()
    if not len(short):
        return texts
    full = pa.array([format(Decimal(one), "f") for one in short.to_pylist()], pa.string())
    return pc.coalesce(full.take(pc.index_in(texts, value_set=short)), texts)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values in place of dictionary codes and views, which text files do not know."""
    column = decode_labels(column)
    return column.cast(pa.string()) if pa.types.is_string_view(column.type) else column


def _without_runs(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values in place of runs, which few readers know."""
    if not pa.types.is_run_end_encoded(column.type):
        return column
    return pa.chunked_array([pc.run_end_decode(c) for c in column.chunks], column.type.value_type)


def _each(table: pa.Table, change: Callable[[pa.ChunkedArray], pa.ChunkedArray]) -> pa.Table:
    return pa.table([change(column) for column in table.columns], names=table.column_names)


def holds_metadata(path: str | PathLike[str]) -> bool:
    """Whether a file of this kind can say something of itself."""
    return table_kind(path) in (".parquet", ".feather", ".arrow")


def read_document(path: str | PathLike[str], what: str) -> Any:
    """What a JSON file holds, which ``what`` names in errors.

    Raises:
        InputError: it cannot be read, or is no JSON.
    """
    file = Path(path)
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        why = error.strerror or "no access"
        raise InputError(f"The {what} {str(file)!r} cannot be read: {why}.") from error
    except (ValueError, RecursionError) as error:  # of very many brackets the latter
        raise InputError(f"The {what} {str(file)!r} is not a JSON file.") from error


def table_kind(path: str | PathLike[str]) -> str:
    """The kind of table that the name of a file asks for."""
    name = Path(path).name.lower()
    for kind in sorted(_KINDS, key=len, reverse=True):
        if name.endswith(kind) and name != kind:
            return kind
    raise InputError(
        f"The file name {Path(path).name!r} does not say which kind to write: end it in one of "
        f"{', '.join(_KINDS)}."
    )


REPORTS = (".json", ".html", ".htm", ".pdf")


def report_kind(path: str | PathLike[str]) -> str:
    """The kind of report that the name of a file asks for.

    Raises:
        InputError: it is none.
        EngineUnavailableError: it is PDF, and nothing here can print a page.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in REPORTS:
        raise InputError(
            f"The report {Path(path).name!r} can be .json, .html or .pdf: end its name in one."
        )
    if suffix == ".pdf":
        _printer()
    return suffix


def write_report(
    path: str | PathLike[str],
    document: Mapping[str, Any],
    page: Callable[[], str],
    file: Callable[[str | PathLike[str]], AbstractContextManager[Path]] = whole_file,
) -> None:
    """Write a document as ``.json``, or its page as ``.html`` or ``.pdf``, whole or not at all."""
    suffix = report_kind(path)
    if suffix == ".json":
        text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    else:
        text = page()
    with file(path) as temporary:
        if suffix == ".pdf":
            _printer()(text, temporary)
        else:
            temporary.write_text(text, encoding="utf-8")


_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")


def _printer() -> Callable[[str, Path], None]:
    """What prints a page here: a browser, which draws the plots too, or weasyprint."""
    browser = next((found for name in _BROWSERS if (found := shutil.which(name))), None)
    if browser is not None:
        return lambda page, target: _print_by_browser(browser, page, target)
    if importlib.util.find_spec("weasyprint") is not None:
        return _print_by_weasyprint
    raise EngineUnavailableError(
        "A printer of PDF (chromium or weasyprint)",
        "pip install weasyprint, or write .html and print it from a browser",
    )


def _print_by_browser(browser: str, page: str, target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="halfmask-") as folder:
        source = Path(folder) / "report.html"
        make_private(source)
        source.write_text(page, encoding="utf-8")
        command = [browser, "--headless", "--disable-gpu", f"--user-data-dir={folder}/profile",
                   "--no-pdf-header-footer", "--virtual-time-budget=10000",
                   f"--print-to-pdf={target.resolve()}", source.as_uri()]  # fmt: skip
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # a browser refuses to start as root with it
        done = subprocess.run(command, capture_output=True, check=False, timeout=120)  # noqa: S603
    if done.returncode or not target.is_file() or not target.stat().st_size:
        raise InputError(
            f"{Path(browser).name} could not print the report: write .html and print it yourself."
        )


def _print_by_weasyprint(page: str, target: Path) -> None:
    import weasyprint  # type: ignore[import-not-found]

    weasyprint.HTML(string=page).write_pdf(str(target))


def _write_text(table: pa.Table, path: Path, kind: str, split: str) -> None:
    import pyarrow.csv as csv

    options = csv.WriteOptions(delimiter=split)
    codec = "gzip" if kind.endswith(".gz") else None
    with pa.output_stream(str(path), compression=codec) as stream:
        try:
            csv.write_csv(_each(table, _plain), stream, options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(
                "A column's type cannot be written as text: write .parquet or .arrow instead."
            ) from error


def restore(table: pa.Table, given: Mapping[str, Incoming]) -> pa.Table:
    """The table with the columns of ``given`` as they came in, and plain values in the others.

    Text is held as dictionaries to save memory, which whoever gave plain text did not ask for.
    """
    columns = [
        given[name].restore(column) if name in given else decode_labels(column)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def pandas_frame(table: pa.Table, dtypes: Mapping[str, Any]) -> Any:
    """A pandas frame; columns of ``dtypes`` get these, the others what holds their values."""
    try:
        import pandas as pd
    except ImportError as error:
        raise EngineUnavailableError("pandas", "pip install pandas") from error
    columns = [
        _series(column, dtypes.get(name))
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame()
    frame.columns = pd.Index(table.column_names)
    return frame


def _series(column: pa.ChunkedArray, dtype: Any) -> Any:
    import pandas as pd

    if pa.types.is_run_end_encoded(column.type):
        column = pa.chunked_array([c.values.take(c.find_physical_indices()) for c in column.chunks])
    if dtype is None:
        dtype = _nullable(column)
    elif isinstance(dtype, pd.CategoricalDtype):
        return column.to_pandas()
    if hasattr(dtype, "__from_arrow__"):
        return pd.Series(dtype.__from_arrow__(column), dtype=dtype)
    series = column.to_pandas(integer_object_nulls=True)
    return series if dtype is None or series.dtype == dtype else series.astype(dtype)


def _nullable(column: pa.ChunkedArray) -> Any:
    """The type for whole numbers and truth values of which some are missing."""
    import pandas as pd

    if not column.null_count:
        return None
    if pa.types.is_boolean(column.type):
        return pd.BooleanDtype()
    if not pa.types.is_integer(column.type):
        return None
    sign = "Int" if pa.types.is_signed_integer(column.type) else "UInt"
    return pd.api.types.pandas_dtype(f"{sign}{column.type.bit_width}")


def polars_frame(table: pa.Table, dtypes: Mapping[str, Any]) -> Any:
    """A Polars frame; enumerations list the published values only, in their order."""
    try:
        import polars
    except ImportError as error:
        raise EngineUnavailableError("Polars", "pip install polars") from error
    enums = {}
    for name, dtype in dtypes.items():
        if isinstance(dtype, polars.Enum) and pa.types.is_dictionary(table[name].type):
            values = table[name].chunk(0).dictionary.cast(pa.string())
            enums[name] = polars.Enum(values.to_pylist())
    frame = polars.from_arrow(table)
    texts = [polars.col(name).cast(polars.String).cast(enum) for name, enum in enums.items()]
    return frame.with_columns(texts)  # type: ignore[union-attr]


def duckdb_relation(table: pa.Table) -> Any:
    """A DuckDB relation; it knows no half floats, and reads dictionaries as text."""
    try:
        import duckdb
    except ImportError as error:
        raise EngineUnavailableError("DuckDB", "pip install duckdb") from error
    wider = [pa.float32() if pa.types.is_float16(f.type) else f.type for f in table.schema]
    return duckdb.from_arrow(table.cast(pa.schema(zip(table.column_names, wider, strict=True))))


_EXACT = 2.0**53  # up to here doubles are whole numbers, each of them


def types_of_rows(
    rows: pa.Table,
    table: Table,
    names: Sequence[str],
    written: Mapping[str, Incoming] | None = None,
) -> tuple[pa.Table, Mapping[str, Incoming]]:
    """Rows that leave a text file, of types that they tell themselves, and how they are written.

    Args:
        rows: what leaves.
        table: what was read.
        names: the columns that hold values of the file, not labels.
        written: how columns are written; by default as they were read.
    """
    given = dict(table.given if written is None else written)
    if table.origin != "csv":  # frames, typed files and databases state their types
        return rows, given
    for name in names:
        if name not in rows.column_names or is_declared(table.schema.columns.get(name)):
            continue
        column, form = _own_type(rows[name], name, table)
        if column is None:
            continue
        rows = rows.set_column(rows.column_names.index(name), name, column)
        kind = pa.string() if pa.types.is_dictionary(column.type) else column.type
        if form or name in given:
            given[name] = replace(given.get(name, Incoming(kind)), type=kind, form=form)
    return rows, given


def kept_columns(changes: Sequence[ColumnChange]) -> list[str]:
    """The columns that leave as they were."""
    return [one.name for one in changes if one.published and one.action == AS_IT_WAS]


def _own_type(
    column: pa.ChunkedArray, name: str, table: Table
) -> tuple[pa.ChunkedArray | None, str]:
    """The column of the type that its values tell, and their form; None where it is of that."""
    kind, schema = column.type, table.schema
    text = is_text(kind.value_type if pa.types.is_dictionary(kind) else kind)
    if column.null_count == len(column):
        return (None if text else _dictionary(pa.nulls(len(column), pa.string()))), ""
    if _is_whole(column):
        return column.cast(pa.int64()), ""
    if pa.types.is_floating(kind) and not has_fraction(column):
        return None, ""
    texts = column if text else text_forms(pa.table({name: column}), table.given).get(name)
    if texts is None:  # whole numbers, decimals with a point, dates with the year in front
        return None, ""
    codes = _dictionary(texts)
    found = infer_type(codes, schema.decimal)
    if _is_whole(found):  # as above, whatever the reader took them for
        return found.cast(pa.int64()), ""
    if found.type == kind:
        return None, ""
    if found is codes:
        return sort_dictionary(codes), ""
    return found, form_of_texts(codes, found.type, schema, name)[0]


def _dictionary(texts: pa.Array | pa.ChunkedArray) -> pa.ChunkedArray:
    whole = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([texts])
    return pa.chunked_array([dictionary_of(whole)])


def _is_whole(column: pa.ChunkedArray) -> bool:
    """Whether all are doubles that are whole numbers, each exactly."""
    if not pa.types.is_floating(column.type) or has_fraction(column):
        return False
    return all(abs(end) <= _EXACT for end in pc.min_max(column).as_py().values())
