from pyspark_jms.amqp.wire.limits import MAX_FRAME_BYTES, MIN_IDLE_SECONDS, MIN_MAX_FRAME_BYTES, Limits


def test_the_limits_of_the_specification():
    assert MIN_MAX_FRAME_BYTES == 512
    assert MIN_IDLE_SECONDS >= 0.5
    assert Limits().max_frame_bytes == MAX_FRAME_BYTES >= MIN_MAX_FRAME_BYTES
