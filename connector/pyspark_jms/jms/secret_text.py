"""Text and bytes whose ``repr`` hides the value, because a traceback with local variables shows the ``repr`` of all.

Spark prints such tracebacks with spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled.
"""

__all__ = ["SecretBytes", "SecretText"]

_REDACTED = "'*********(redacted)'"


class SecretText(str):
    """A ``str`` with a redacted ``repr``. Slices and concatenations of it are plain ``str``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _REDACTED


class SecretBytes(bytes):
    __slots__ = ()

    def __repr__(self) -> str:
        return _REDACTED
