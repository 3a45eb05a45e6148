"""AMQP 1.0 as a protocol core: bytes in, states and messages out. No socket, no thread, no clock."""
