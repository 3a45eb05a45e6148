"""Selector to a text for the broker, and the residual that Spark evaluates."""
