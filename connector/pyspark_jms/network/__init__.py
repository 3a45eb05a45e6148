"""Addresses, TLS, host names and retries, for connections of every protocol."""
