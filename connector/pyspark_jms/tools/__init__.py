"""What a person runs, beside or before a query: commands, checks, moving messages, brokers for tests, the demo.

No query imports this package.
"""
