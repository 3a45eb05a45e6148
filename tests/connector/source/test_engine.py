from pyspark_jms.source.engine import SourceEngine
from pyspark_jms.source.readers.planner import ReaderSource
from pyspark_jms.source.stream import StreamSource


def test_both_ways_of_reading_have_one_face():
    names = {name for name in vars(SourceEngine) if not name.startswith("_")}
    assert names == {"initial_offset", "drain", "latest_offset", "partitions", "commit", "progress", "stop"}
    for engine in (StreamSource, ReaderSource):
        assert names <= set(vars(engine))
