"""The protocol of exactly-once over AMQP: which step follows which at the broker, as machines without I/O and clock."""
