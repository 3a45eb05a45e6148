import pickle

import pytest

from pyspark_jms.amqp.source import AmqpSource
from pyspark_jms.blocks.block import MessageBlock
from pyspark_jms.blocks.partition_slice import PartitionSlice
from pyspark_jms.options.source import SourceOptions
from pyspark_jms.source.task_inputs import TaskInputs, read_task

TEXT = b"\x00\x53\x77\xa1\x02hi"


@pytest.fixture
def inputs():
    made = TaskInputs(OPTIONS, AmqpSource())
    yield made
    made.close()


OPTIONS = SourceOptions.parse(
    {"brokerUrl": "amqp://h:1", "queue": "q", "selector": "JMSXDeliveryCount = 5"} | {"selectorResidual": "spark"}
)


def part(place=None):
    block = MessageBlock(TEXT)
    block.ends.append(len(TEXT))
    return PartitionSlice("queue://q", "artemis", 7, place or block)


def test_a_task_answers_where_it_runs_and_what_it_dropped(inputs):
    assert not inputs.are_here()
    [task] = pickle.loads(pickle.dumps(inputs.of([[part()]], ["artemis"])))
    assert len(task) == 1
    assert "not known" in str(inputs.dropped())
    [rows] = read_task(task, OPTIONS, AmqpSource())
    assert rows.num_rows == 0  # it is the first delivery
    assert inputs.are_here()
    assert inputs.dropped() == 1
    inputs.release(8)
    assert inputs.dropped() == 1


def test_tasks_of_this_machine_map_memory_until_the_batch_is_done(inputs):
    memory = inputs.memory_for(8)
    if memory is None:
        pytest.skip("no memory files here")
    place = memory.put(part().place)
    assert place.load().data == TEXT
    inputs.release(8)
    with pytest.raises(Exception, match="JMS_ILLEGAL_STATE"):
        place.load()
