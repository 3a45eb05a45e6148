"""What a task and a keeper have in common is explored in ``test_reader.py``; here, that nothing of it is shared."""

from pyspark_jms.delivery.register.holder import State
from pyspark_jms.delivery.register.outcomes import Phase
from pyspark_jms.delivery.register.reader import ReaderTask


def test_a_machine_begins_without_a_token():
    assert ReaderTask().state == State(phase=Phase.BEGINNING)


def test_a_state_is_a_value():
    assert State() == State()
    assert hash(State()) == hash(State())
