"""Writing: the transaction of a task and its guarantee. No pyspark, and no protocol but ``sink.links``."""
