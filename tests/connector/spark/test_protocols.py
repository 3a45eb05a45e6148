import pickle

import pytest

from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.readers.planner import ReaderSource
from pyspark_jms.source.stream import StreamSource
from pyspark_jms.spark.protocols import SourceEngine, connect_sink, source_protocol
from pyspark_jms.stomp.sink import StompSinkLink
from pyspark_jms.stomp.source import StompSource


def test_both_ways_of_reading_have_one_interface():
    names = {name for name in vars(SourceEngine) if not name.startswith("_")}
    assert names == {"initial_offset", "drain", "latest_offset", "partitions", "commit", "progress", "stop"}
    for engine in (StreamSource, ReaderSource):
        assert names <= set(vars(engine))


def test_stomp_urls_speak_stomp():
    for url in ("stomp://h", "stomp+ssl://h"):
        assert isinstance(source_protocol(SourceOptions.parse({"brokerUrl": url, "queue": "q"})), StompSource)


@pytest.mark.parametrize("url", ["stomp://h:61613", "stomp+ssl://h:61614", "stomp://a:1,stomp://b:2"])
def test_every_scheme_of_today_is_stomp(url):
    options = SinkOptions.parse({"brokerUrl": url, "queue": "q"})
    assert connect_sink(options) is StompSinkLink
    assert connect_sink(pickle.loads(pickle.dumps(options))) is connect_sink(options)  # as on an executor
