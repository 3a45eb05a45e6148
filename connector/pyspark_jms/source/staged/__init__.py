"""A read that keeps its messages in a staging queue of the broker: exactly once without a disk."""
