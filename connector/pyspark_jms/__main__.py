"""``python -m pyspark_jms`` is the command ``pyspark-jms``."""

import sys

from pyspark_jms.tools.cli import main

if __name__ == "__main__":
    sys.exit(main())
