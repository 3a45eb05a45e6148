"""STOMP 1.2 bytes: frame ends, header escapes, frames both ways. Knows no broker, no socket, no clock."""
