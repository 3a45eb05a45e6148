"""``pyspark-jms move``: messages from queue to queue, with all that they carry. ``engine`` knows no protocol."""
