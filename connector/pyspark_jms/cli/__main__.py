"""``python -m pyspark_jms.cli`` is the command ``pyspark-jms``."""

import sys

from pyspark_jms.cli import main

if __name__ == "__main__":
    sys.exit(main())
