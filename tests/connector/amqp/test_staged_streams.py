"""The commands are tested in tests/connector/cli/test_staging.py; here is what they do with odd queues."""

import uuid

from pyspark_jms.amqp.link.staging_queue import Names, StagingQueue
from pyspark_jms.amqp.staged_streams import drop_stream, list_streams, show_stream


def test_a_queue_with_a_client_id_is_listed_by_its_address(broker, settings_for):
    prefix = f"mine.{uuid.uuid4().hex[:8]}."
    names = Names(f"{prefix}a", "s1", f"client-{uuid.uuid4().hex[:8]}")
    owner = StagingQueue(settings_for(broker), names)
    owner.lock()
    owner.create_token("not a token of ours")
    [listed] = list_streams(settings_for(broker), prefix)
    assert (listed.name, listed.blocks, listed.tokens, listed.owned) == (names.address, 0, 1, True)
    shown = show_stream(settings_for(broker), names)
    assert (shown.tokens, shown.next, shown.streams) == ((), None, ())
    owner.close()
    drop_stream(settings_for(broker), names)
    assert list_streams(settings_for(broker), prefix) == []
