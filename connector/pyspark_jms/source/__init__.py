"""Reading: subscriptions, batches and their acknowledgement. No pyspark, and no protocol but ``source.links``."""
