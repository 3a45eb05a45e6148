"""Why the source has no ``pushFilters``: Spark applies a pushed filter to the next query of the same DataFrame too.

No code of the connector takes part. When the test passes in a release of Spark, the source may define ``pushFilters``.
"""

import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader, EqualTo, InputPartition

from pyspark_jms.spark.batch_reader import JmsPeek

pytestmark = pytest.mark.spark

SETTING = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture
def ten_rows(spark, set_spark):
    """A source of ten rows that pushes ``a = …`` and returns every filter to Spark, as the API wants it."""

    class Reader(DataSourceReader):  # local classes: Spark's workers cannot import this module
        only = None

        def pushFilters(self, filters):  # noqa: N802 - the name is Spark's
            for each in filters:
                if isinstance(each, EqualTo) and each.attribute == ("a",):
                    self.only = each.value
                yield each

        def partitions(self):
            return [InputPartition(0)]

        def read(self, partition):
            yield from ((n,) for n in range(10) if self.only in {None, n})

    class TenRows(DataSource):
        @classmethod
        def name(cls):
            return "ten_rows"

        def schema(self):
            return "a int"

        def reader(self, schema):
            return Reader()

    spark.dataSource.register(TenRows)
    set_spark(SETTING, "true")
    return spark.read.format("ten_rows").load()


@pytest.mark.xfail(strict=True, reason="Spark keeps the filter for the next query")
def test_a_pushed_filter_is_of_its_query_only(ten_rows):
    assert ten_rows.filter("a = 3").count() == 1
    assert ten_rows.count() == 10


def test_the_source_pushes_no_filter():
    assert JmsPeek.pushFilters is DataSourceReader.pushFilters
