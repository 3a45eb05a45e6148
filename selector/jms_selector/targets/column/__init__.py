"""Selector -> Spark column. Only this package imports pyspark, at the first call."""
