"""``jms-selector``, with the headers of the connector's schema."""

import sys

from jms_selector import cli
from pyspark_jms.jms.headers import SELECTOR_SCHEMA

__all__ = ["main"]


def main() -> int:
    return cli.main(sys.argv[1:], SELECTOR_SCHEMA)
