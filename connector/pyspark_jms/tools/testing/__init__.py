"""The brokers and the Java client of ``pyspark_jms.testing``."""
