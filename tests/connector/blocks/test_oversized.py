import io

from pyspark_jms.blocks.oversized import OversizedMessage


def test_counts_and_keeps_its_body_where_it_is_told_to():
    for body in (io.BytesIO(), None):
        message = OversizedMessage(b"MESSAGE\nmessage-id:1", b"1", body)
        message.add(memoryview(b"secret "))
        message.add(memoryview(b"text"))
        assert message.size == 11
        assert body is None or body.getvalue() == b"secret text"
        assert "secret" not in repr(message)
