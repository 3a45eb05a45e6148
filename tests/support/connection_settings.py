"""The settings of a connection to a broker of the tests, as options would give them."""

from pyspark_jms.network.address import parse_broker_url
from pyspark_jms.network.settings import ConnectionSettings, Password


def settings_over(broker, /, protocol="stomp", *, url=None, user=None, password=None, **changes):
    """The broker's own user, or another one. The users that tests add have the password ``pw``."""
    if "addresses" not in changes:
        changes["addresses"] = parse_broker_url(url or (broker.amqp_url if protocol == "amqp" else broker.url))
    password = Password(value=password or ("pw" if user else broker.password))
    return ConnectionSettings(user=user or broker.user, password=password, **changes)
