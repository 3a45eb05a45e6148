"""A read whose tasks receive: exactly once over AMQP, with no message on the driver."""
