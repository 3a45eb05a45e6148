"""Requests to a broker's management, the same over every protocol. Does not know frames."""
