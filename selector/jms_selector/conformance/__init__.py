"""Runners for files of test cases: the command ``jms-selector conformance``. Only the command imports them."""
