"""JMS queues and topics for Spark: ``format("jms")`` to read and write, in streams and batches.

Spark imports this module in every worker and in every look-up of data sources. A ``pyspark_*`` package that fails to
import hides all other data sources, so this module imports nothing. It imports ``DefaultSource``, the name that Spark
looks up, on first access.
"""

TYPE_CHECKING = False  # type checkers recognise this name; importing typing takes 20 ms
if TYPE_CHECKING:
    from pyspark_jms.spark.source import JmsDataSource as DefaultSource

__all__ = ["DefaultSource", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "DefaultSource":
        from pyspark_jms.spark.source import JmsDataSource

        return JmsDataSource
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
