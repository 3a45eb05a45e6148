"""STOMP 1.2 octets: frame ends, header escapes, frames both ways. Knows no broker, no socket, no clock."""
