import pytest

from pyspark_jms.amqp.link.reasons import error_of
from pyspark_jms.amqp.wire.link import PeerError
from pyspark_jms.errors import (
    BrokerError,
    ConnectionLostError,
    InvalidDestinationError,
    InvalidSelectorError,
    JMSSecurityError,
    SubscriptionInUseError,
)
from pyspark_jms.network.address import Address

ADDRESS = Address("host", 5672, protocol="amqp")


@pytest.mark.parametrize(
    ("condition", "description", "kind"),
    [
        ("amqp:unauthorized-access", "the login was refused", JMSSecurityError),
        ("amqp:internal-error", "AMQ229032: User: x does not have permission='CREATE_ADDRESS'", JMSSecurityError),
        ("amqp:unauthorized-access", "AMQ229213: User: x does not have permission='CONSUME'", JMSSecurityError),
        ("amqp:invalid-field", "Invalid selector", InvalidSelectorError),
        ("amqp:invalid-field", '{amqp_address_v1_not_permitted, <<"q">>}', InvalidDestinationError),
        ("amqp:invalid-field", "source_required", BrokerError),
        ("amqp:not-found", "", InvalidDestinationError),
        ("amqp:internal-error", "Incorrect Routing Type for queried queue c.n", InvalidDestinationError),
        ("amqp:illegal-state", "Address t is not configured for queue support", InvalidDestinationError),
        ("amqp:resource-deleted", "", InvalidDestinationError),
        ("amqp:released", "", InvalidDestinationError),
        ("amqp:internal-error", "AMQ229200: Maximum Consumer Limit Reached on Queue", SubscriptionInUseError),
        ("amqp:internal-error", "AMQ229019: Queue a.token already exists on address a", SubscriptionInUseError),
        ("amqp:link:stolen", "", SubscriptionInUseError),
        ("amqp:connection:forced", "", ConnectionLostError),
        ("amqp:resource-limit-exceeded", "local-idle-timeout expired", ConnectionLostError),
        ("failed", "AMQ229102: Address is full", BrokerError),
    ],
)
def test_a_condition_or_a_text_says_which_error_it_is(condition, description, kind):
    error = error_of(ADDRESS, PeerError(condition, description))
    assert type(error) is kind
    assert "amqp://host:5672" in error.fact
    assert condition in error.fact
    assert error.remedy


@pytest.mark.parametrize(("selected", "kind"), [(True, InvalidSelectorError), (False, BrokerError)])
def test_an_invalid_field_is_the_selector_if_one_was_sent(selected, kind):
    assert type(error_of(ADDRESS, PeerError("amqp:invalid-field", "Invalid filter"), selected=selected)) is kind


def test_a_long_text_is_cut():
    assert len(error_of(ADDRESS, PeerError("x", "y" * 10_000)).fact) < 400
