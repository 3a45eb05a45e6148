"""The differences between releases are found in the installed classes, and are what the release documents."""

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql.datasource import DataSourceArrowWriter
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DateType, StringType, TimestampType

from pyspark_jms.columns.schema import ARROW_SCHEMA
from pyspark_jms.spark import releases
from pyspark_jms.spark.source import JmsDataSource

pytestmark = pytest.mark.releases

RELEASE = tuple(map(int, pyspark.__version__.split(".")[:2]))
"""Apache's own releases are what their versions say; the product does not ask for the version."""


def test_admission_control_is_found_where_the_release_has_it():
    assert (RELEASE >= (4, 2)) == releases.HAS_ADMISSION_CONTROL


def test_the_writer_of_record_batches_is_what_the_release_recognises():
    assert issubclass(releases.StreamArrowWriter, DataSourceArrowWriter) == (RELEASE < (4, 1))
    name = "DataSourceStreamArrowWriter" if RELEASE >= (4, 1) else "DataSourceArrowWriter"
    assert releases.StreamArrowWriter.__name__ == name


def test_timestamps_are_in_utc():
    assert releases.arrow_type(TimestampType()) == pa.timestamp("us", tz="UTC")
    assert [releases.arrow_type(each) for each in (StringType(), DateType())] == [pa.string(), pa.date32()]


def test_the_reader_is_the_one_that_the_release_can_use():
    source = JmsDataSource({"brokerUrl": "stomp://localhost:1", "queue": "q"})
    reader = source.streamReader(from_arrow_schema(ARROW_SCHEMA))
    assert hasattr(reader, "prepareForTriggerAvailableNow") == releases.HAS_ADMISSION_CONTROL
