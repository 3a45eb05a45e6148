import dataclasses

import pytest

from pyspark_jms.management.broker_identity import broker_identity
from pyspark_jms.network.address import Address, parse_broker_url
from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic, User


def test_a_broker_tells_the_id_of_its_store(broker, settings_for, open_link, url_of):
    [address] = parse_broker_url(url_of(broker))
    nowhere = Address("127.0.0.1", 1, protocol=address.protocol)
    settings = dataclasses.replace(settings_for(broker), addresses=(nowhere, address))
    assert broker_identity(open_link, settings, address) == str(broker.server.getNodeID())
    assert broker_identity(open_link, settings, nowhere) is None, "only the address that is named is asked"


@pytest.mark.deep
def test_who_may_not_ask_and_what_cannot_answer(settings_for, open_link, url_of):
    with EmbeddedArtemis(users=[User("worker", "pw", permissions={"send", "consume", "createAddress"})]) as broker:
        [address] = parse_broker_url(url_of(broker))
        assert broker_identity(open_link, settings_for(broker, user="worker"), address) is None
    with EmbeddedClassic() as classic:
        [address] = parse_broker_url(url_of(classic))
        assert broker_identity(open_link, settings_for(classic), address) is None
