"""STOMP frames to Arrow columns and back. Knows pyarrow and the dialects; no socket and no Spark."""
