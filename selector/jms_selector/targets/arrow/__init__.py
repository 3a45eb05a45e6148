"""Selector to Arrow masks. Imports numpy and pyarrow."""
