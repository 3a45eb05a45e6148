"""The only sockets: addresses and failover, TLS, the connection (stomp.py and our tap), consumer and producer."""
