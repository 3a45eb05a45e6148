"""``pyspark-jms check``: finds out what a broker can do for a user, and what is on a queue, before a query uses them.

A check is a function that returns findings; ``run`` calls the checks in order. Does not use Spark.
"""
