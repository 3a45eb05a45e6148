"""Blocks of whole messages: their bytes, where each message begins and ends, and its id."""
