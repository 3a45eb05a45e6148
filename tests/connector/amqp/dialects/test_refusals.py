from dataclasses import replace

import pytest

from pyspark_jms.amqp.dialects import AMQP, ARTEMIS, BROKER_J, CLASSIC
from pyspark_jms.amqp.dialects.refusals import refuse_journal, require_register, require_transactions
from pyspark_jms.errors import UnsupportedError


def test_what_needs_stomp_names_the_address_to_use():
    with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*stomp://HOST:61613"):
        refuse_journal()


def test_a_broker_without_a_lock_has_no_exactly_once_writes():
    require_register(ARTEMIS)
    for dialect in (CLASSIC, BROKER_J, AMQP):
        with pytest.raises(UnsupportedError, match=rf"exactly-once.*over AMQP, and {dialect.name} .*use Artemis"):
            require_register(dialect)


def test_a_broker_without_transactions_writes_without_them():
    require_transactions(ARTEMIS)
    with pytest.raises(UnsupportedError, match="transaction=none"):
        require_transactions(replace(ARTEMIS, has_transactions=False))
