import pickle

from pyspark_jms.delivery.register.outcomes import Read
from pyspark_jms.source.readers.reader_input import ReaderInput


def test_a_task_is_small_and_has_no_message():
    read = Read(stream="s", name="t", reader=2, batch=7, since=6)
    task = ReaderInput(read, "base", 3)
    assert repr(task) == "reader 2 of batch 7"
    assert len(pickle.dumps(task)) < 500
