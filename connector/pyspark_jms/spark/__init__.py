"""What Spark calls: data source, stream reader, stream writer. Thin: the work is done below."""
