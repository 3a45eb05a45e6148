"""STOMP connections: sockets, TLS and failover, with stomp.py; consumers, producers, management."""
