"""``pyspark-jms check``: what this broker can do for this user, and what is on a queue, before a query relies on it.

A check is a function that asks and returns findings; ``run`` calls them in order. Knows no Spark.
"""
