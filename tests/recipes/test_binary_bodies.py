"""Avro and Protobuf: the page's programs on each release of Spark that they are for.

`make test-spark` runs the program for Avro: there is no package for the newest release.
"""

import pages
import pyspark
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.releases, pytest.mark.timeout(900)]

PAGE = "bad-messages.md"
HAS_AVRO = f"| {pyspark.__version__} | `" in (pages.FOLDER / PAGE).read_text()


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(
            "avro_orders.py",
            marks=pytest.mark.skipif(not HAS_AVRO, reason=f"{PAGE} has no package for PySpark {pyspark.__version__}"),
        ),
        "protobuf_orders.py",
    ],
)
def test_a_readable_body_becomes_columns_and_another_one_is_kept(run, program):
    expected = pages.output(PAGE, program)
    assert "".join(run(program).splitlines(keepends=True)[-expected.count("\n") :]) == expected
