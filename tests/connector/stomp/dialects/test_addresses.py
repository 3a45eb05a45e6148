import pytest

from pyspark_jms.errors import InvalidDestinationError
from pyspark_jms.jms.model import Destination, DestinationKind
from pyspark_jms.jms.names import RefusedName
from pyspark_jms.stomp.dialects.addresses import Addresses

QUEUE, TOPIC = DestinationKind.QUEUE, DestinationKind.TOPIC
PREFIXED = {QUEUE: "/queue/", TOPIC: "/topic/"}


def spelled(addresses, text, *, sending=True):
    return addresses.header_value(Destination.parse(text), sending=sending)


def test_by_default_a_name_is_itself():
    assert spelled(Addresses(), "queue://a/b,c?") == "a/b,c?"


def test_prefixes():
    addresses = Addresses(prefixes=PREFIXED)
    assert spelled(addresses, "queue://orders") == "/queue/orders"
    assert spelled(addresses, "topic://orders") == "/topic/orders"


@pytest.mark.parametrize(
    ("name", "wire"), [("a/b", "a%2Fb"), ("a%2Fb", "a%252Fb"), ("ä b", "%C3%A4%20b"), ("a.b-c_d~e", "a.b-c_d~e")]
)
def test_percent_encoding(name, wire):
    addresses = Addresses(prefixes=PREFIXED, percent_encoded=True)
    assert spelled(addresses, f"queue://{name}") == f"/queue/{wire}"


def test_temporary_names_have_a_prefix_of_their_own():
    addresses = Addresses(prefixes=PREFIXED, temporary_prefixes={QUEUE: ("ID:", "/temp/")})
    assert spelled(addresses, "queue://ID:1") == "/temp/ID:1"
    assert spelled(addresses, "queue://xID:1") == "/queue/xID:1"
    assert spelled(addresses, "topic://ID:1") == "/topic/ID:1"


def test_the_broker_s_own_spelling_goes_as_it_is():
    addresses = Addresses(prefixes=PREFIXED, percent_encoded=True, native_prefixes={QUEUE: ("/amq/queue/",)})
    assert spelled(addresses, "queue:///amq/queue/a%2Fb") == "/amq/queue/a%2Fb"
    assert spelled(addresses, "queue:///amq/other") == "/queue/%2Famq%2Fother"
    assert spelled(addresses, "topic:///amq/queue/a") == "/topic/%2Famq%2Fqueue%2Fa"


def test_a_name_that_the_broker_would_misread_is_refused():
    addresses = Addresses(
        refused_names=(
            RefusedName(pattern=",", reason="is two"),
            RefusedName(pattern=">", reason="is many", when_reading=False),
        )
    )
    with pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION.*'a,b'"):
        spelled(addresses, "queue://a,b", sending=False)
    with pytest.raises(InvalidDestinationError, match="'a>'"):
        spelled(addresses, "queue://a>")
    assert spelled(addresses, "queue://a>", sending=False) == "a>"


def test_a_reader_s_wildcards_stay_in_a_percent_encoded_topic():
    addresses = Addresses(prefixes=PREFIXED, percent_encoded=True, topic_wildcards="#*")
    assert spelled(addresses, "topic://a b.#.*", sending=False) == "/topic/a%20b.#.*"
    assert spelled(addresses, "topic://a.#") == "/topic/a.%23"
    assert spelled(addresses, "queue://a.#", sending=False) == "/queue/a.%23"


def test_a_name_refused_in_rows_may_be_given_as_an_option():
    closed = RefusedName(pattern="^admin$", reason="acts", remedy="Ask somebody.")
    addresses = Addresses(refused_in_rows=(closed,))
    admin = Destination.parse("queue://admin")
    assert addresses.header_value(admin, sending=True) == "admin"
    with pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION.*'admin'"):
        addresses.header_value(admin, sending=True, by_row=True)


@pytest.mark.parametrize("name", ["pyspark-jms.commits.x", "a::pyspark-jms.commits.x", "pyspark-jms.management"])
def test_a_row_does_not_write_into_our_own_queues(name):
    destination = Destination(QUEUE, name)
    assert Addresses().header_value(destination, sending=True) == name
    with pytest.raises(InvalidDestinationError, match=r"JMS_INVALID_DESTINATION.*pyspark-jms"):
        Addresses().header_value(destination, sending=True, by_row=True)
