"""Requests to a broker's management, the same over every protocol. Refuses to know frames."""
