"""What a broker does on a scratch queue, compared with what its dialect says: ``pyspark-jms check --conformance``."""
