"""What the connection options need of each other, for a source and for a sink."""

import pytest

from pyspark_jms.errors import MissingOptionError, OptionConflictError
from pyspark_jms.options.sink import SinkOptions
from pyspark_jms.options.source import SourceOptions

URL = {"brokerUrl": "stomp://host:1"}
TLS = {"brokerUrl": "stomp+ssl://host:1"}
SOURCE = URL | {"queue": "orders"}
SECRET = "s3cr3t"


def test_the_broker_must_be_given():
    for parser in (SourceOptions, SinkOptions):
        with pytest.raises(MissingOptionError, match=r"brokerUrl .*stomp://HOST:61613"):
            parser.parse({"queue": "orders"})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"user": "me", "password": SECRET, "passwordFile": "f"}, "password and passwordFile are both given"),
        ({"user": "me", "passwordFile": "f", "passwordEnv": "E"}, "passwordFile and passwordEnv are both given"),
        ({"password": SECRET}, "password is given without user"),
        ({"passwordEnv": "E"}, "passwordEnv is given without user"),
        (TLS | {"sslKeyFile": "k"}, "sslKeyFile is given without sslCertFile"),
        (TLS | {"sslKeyPassword": SECRET}, "sslKeyPassword is given without sslCertFile"),
        ({"sslCaFile": "ca"}, "no address of brokerUrl uses TLS"),
        ({"sslCertFile": "c"}, "no address of brokerUrl uses TLS"),
    ],
)
@pytest.mark.parametrize("parser", [SourceOptions, SinkOptions])
def test_what_does_not_go_together(parser, given, reason):
    with pytest.raises(OptionConflictError, match="JMS_OPTION_CONFLICT") as error:
        parser.parse(SOURCE | given)
    assert reason in error.value.fact
    assert error.value.remedy
    assert SECRET not in str(error.value)
