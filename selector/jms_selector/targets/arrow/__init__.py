"""Selector -> Arrow masks. Imports numpy and pyarrow."""
