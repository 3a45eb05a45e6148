"""Blocks of AMQP messages to RecordBatches of the schema, and back."""
