"""Part of a batch → one RecordBatch: in a task of a stream, and in a batch read."""

from typing import Any

from pyspark_jms.blocks.partition_slice import PartitionSlice
from pyspark_jms.columns.read_columns import ReadColumns, WantedColumns
from pyspark_jms.columns.selection import Selection, selection
from pyspark_jms.errors import BadMessageError
from pyspark_jms.jms.model import Destination
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.gc_freeze import freeze_gc
from pyspark_jms.source.links import SourceProtocol

__all__ = ["may_drop", "rows_of"]


def rows_of(part: PartitionSlice, options: SourceOptions, protocol: SourceProtocol) -> tuple[Any, int]:
    """One RecordBatch with the columns that are asked for, and how many messages the selector dropped.

    With ``onBadMessage=fail`` a ``BadMessageError`` instead of a row with ``body_error``, also if that column is not
    asked for.
    """
    freeze_gc()
    source = Destination.parse(part.source)
    chosen = _selection(options, protocol, part.dialect)
    batch = protocol.decode(
        part.place.load(),
        dialect=part.dialect,
        source=source,
        first_sequence=part.first_sequence,
        body_type=options.body_type,
        max_elements=options.max_elements,
        wanted=_wanted(options, chosen),
    )
    kept = batch if chosen is None else chosen.apply(batch, source.kind)
    rows = protocol.open_envelopes(kept, options.body_type, options.max_elements)
    asked, errors = _asked(options.columns, rows)
    if options.on_bad_message == "fail":
        _require_good(batch.column("body_error"))
        _require_good(errors)
    return asked, batch.num_rows - kept.num_rows


def may_drop(source: Destination, dialect: str, options: SourceOptions, protocol: SourceProtocol) -> bool:
    """Whether messages from there may become no row."""
    chosen = _selection(options, protocol, dialect)
    return chosen is not None and chosen.may_drop(source.kind)


def _selection(options: SourceOptions, protocol: SourceProtocol, dialect: str) -> Selection | None:
    if options.selector is None:
        return None
    return selection(options.selector, dialect, protocol.selector_dialect(dialect))


def _wanted(options: SourceOptions, chosen: Selection | None) -> WantedColumns | None:
    """What is decoded: what is asked for, and what decides about the rows. None: everything."""
    if options.columns is None or options.on_bad_message == "fail":
        return None
    return options.columns.wanted(() if chosen is None else chosen.columns())


def _asked(columns: ReadColumns | None, rows: Any) -> tuple[Any, Any]:
    """The rows with the columns that are asked for, and their ``body_error``."""
    if columns is None:
        return rows, rows.column("body_error")
    from pyspark_jms.columns.read_properties import asked_rows  # with pyarrow's kernels, as decode

    return asked_rows(columns, rows)


def _require_good(errors: Any) -> None:
    reasons = errors.drop_null()
    if len(reasons):
        raise BadMessageError(
            f"{len(reasons)} of {len(errors)} messages cannot be mapped, the first because: {reasons[0].as_py()}",
            "They stay on the broker, or in the journal. onBadMessage=keep makes rows with body_error and the bytes.",
        )
