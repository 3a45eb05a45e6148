"""Text and bytes whose ``repr`` shows nothing: a traceback with local variables may show any value that code holds.

Spark prints such tracebacks with spark.sql.execution.pyspark.udf.tracebackWithLocals.enabled.
"""

__all__ = ["SecretBytes", "SecretText"]

_SHOWN = "'*********(redacted)'"


class SecretText(str):
    """Used as the text that it is. What is cut from it or joined with it is a plain ``str``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return _SHOWN


class SecretBytes(bytes):
    __slots__ = ()

    def __repr__(self) -> str:
        return _SHOWN
