"""STOMP 1.2: bytes and frames, the dialects of brokers, connections, and columns of its messages."""
