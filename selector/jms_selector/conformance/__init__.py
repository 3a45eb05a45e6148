"""Runners for files of test cases: the command ``jms-selector conformance``. Only this command imports the runners."""
