"""``SinkOptions``: the options of a write, parsed once, before anything connects."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyspark_jms.columns.schema import check_columns
from pyspark_jms.errors import InvalidDestinationError, InvalidOptionError, OptionConflictError
from pyspark_jms.jms.features import Feature
from pyspark_jms.jms.model import Destination
from pyspark_jms.network.settings import ConnectionSettings
from pyspark_jms.options.broker import target_of
from pyspark_jms.options.values import both_given, connection_settings, destinations, made, parse_values

__all__ = ["SinkOptions", "check_schema"]

_SET_BY_SPARK = frozenset({"checkpointlocation", "queryname"})
"""Spark passes these options of its own to a sink."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    connection: ConnectionSettings
    destination: Destination | None
    transaction: str | int
    """``auto``, ``task``, ``none``, or the number of rows in a transaction."""
    exactly_once: bool
    send_on_mismatch: bool
    write_id: str | None
    property_columns: tuple[str, ...]
    drop_bad_rows: bool

    @classmethod
    def parse(cls, raw: Mapping[str, str]) -> "SinkOptions":
        """Raise an ``OptionError`` for the first option that is wrong."""
        values = parse_values({key: text for key, text in raw.items() if key.lower() not in _SET_BY_SPARK}, "sink")
        connection = connection_settings(values)
        target, destination, exactly_once = target_of(connection), _default_destination(values), _exactly_once(values)
        if exactly_once:
            target.require(Feature.EXACTLY_ONCE_WRITE)
        if values["transaction"] not in {"auto", "none"}:
            target.require(Feature.TRANSACTIONS)
        return made(
            cls,
            values,
            destination=destination,
            connection=connection,
            exactly_once=exactly_once,
            send_on_mismatch=values["onReplayMismatch"] == "send",
            property_columns=values["propertyColumns"] or (),
            drop_bad_rows=values["onBadRow"] == "drop",
        )


def _default_destination(values: Mapping[str, Any]) -> Destination | None:
    if values["queue"] is not None and values["topic"] is not None:
        raise both_given(
            "queue", "topic", "Keep one as the default destination. Name other destinations in column destination."
        )
    if values["queue"] is not None and len(values["queue"]) > 1:
        raise InvalidOptionError(
            "Option queue of a sink is one name.", "To write to several queues, name the queue in column destination."
        )
    return next(iter(destinations(values)), None)


def _exactly_once(values: Mapping[str, Any]) -> bool:
    exactly_once: bool = values["deliveryGuarantee"] == "exactly-once"
    if exactly_once and values["transaction"] not in {"auto", "task"}:
        raise OptionConflictError(
            f"deliveryGuarantee=exactly-once cannot have transaction={values['transaction']}: a task that fails"
            " half-way would leave rows on the broker, and its next attempt would send them again.",
            "Remove option transaction.",
        )
    for name in ("onReplayMismatch", "writeId"):
        if values[name] is not None and not exactly_once:
            raise OptionConflictError(
                f"Option {name} is given without deliveryGuarantee=exactly-once.", "Give both options or neither."
            )
    return exactly_once


def check_schema(options: SinkOptions, schema: pa.Schema) -> None:
    """Raise the first fault of the columns that does not depend on the rows."""
    check_columns(schema, options.property_columns)
    if options.destination is None and "destination" not in {name.lower() for name in schema.names}:
        raise InvalidDestinationError(
            "The rows have no column destination, and there is no default.",
            "Set option queue or topic, or give each row a destination.",
        )
