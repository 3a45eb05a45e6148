"""Selector to a Spark column. The only importer of pyspark, with the first call."""
