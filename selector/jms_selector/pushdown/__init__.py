"""Selector -> text for the broker and residual for Spark."""
