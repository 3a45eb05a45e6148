from pyspark_jms.options.parsing import SourceOptions
from pyspark_jms.spark.protocols import source_protocol
from pyspark_jms.stomp.source import StompSource


def test_stomp_urls_speak_stomp():
    for url in ("stomp://h", "stomp+ssl://h"):
        assert isinstance(source_protocol(SourceOptions.parse({"brokerUrl": url, "queue": "q"})), StompSource)
