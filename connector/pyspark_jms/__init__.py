"""JMS queues and topics for Spark: ``format("jms")`` to read and write streams over STOMP.

Spark imports this module in every worker and in every look-up of data sources, and one
failing ``pyspark_*`` package hides all others: so nothing is imported here, and
``DefaultSource``, the name Spark looks for, is loaded when it is asked for.
"""

TYPE_CHECKING = False  # type checkers know it by its name; typing's own costs 20 ms in a bare interpreter
if TYPE_CHECKING:
    from pyspark_jms.spark.source import JmsDataSource as DefaultSource

__all__ = ["DefaultSource", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "DefaultSource":
        from pyspark_jms.spark.source import JmsDataSource

        return JmsDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
