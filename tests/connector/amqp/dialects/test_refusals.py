from dataclasses import replace

import pytest

from pyspark_jms.amqp.dialects import ARTEMIS
from pyspark_jms.amqp.dialects.refusals import (
    refuse_exactly_once_writes,
    refuse_journal,
    require_transactions,
)
from pyspark_jms.errors import UnsupportedError


@pytest.mark.parametrize("refuse", [refuse_journal, refuse_exactly_once_writes])
def test_what_needs_stomp_names_the_address_to_use(refuse):
    with pytest.raises(UnsupportedError, match=r"JMS_UNSUPPORTED.*stomp://HOST:61613"):
        refuse()


def test_a_broker_without_transactions_writes_without_them():
    require_transactions(ARTEMIS)
    with pytest.raises(UnsupportedError, match="transaction=none"):
        require_transactions(replace(ARTEMIS, has_transactions=False))
