"""Addresses, TLS, host names and retries: what connections of every protocol need."""
