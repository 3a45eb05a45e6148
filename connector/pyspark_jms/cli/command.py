"""What a command of ``pyspark-jms`` is: its name, its texts, its arguments, and the function that runs it."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Command"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    name: str
    help: str
    description: str
    run: Callable[[argparse.Namespace], int]
    """Returns the exit code. A ``JMSError`` is printed, and the exit code is 1."""
    add_arguments: Callable[[argparse.ArgumentParser], None] | None = None
    epilog: str | None = None
