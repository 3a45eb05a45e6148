"""Frames to Arrow columns and back. Knows pyarrow and the dialect, no socket, no Spark."""
