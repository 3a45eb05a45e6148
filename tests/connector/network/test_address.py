import pytest

from pyspark_jms.network.address import Address, parse_broker_url

ONE = [
    ("stomp://host:61613", Address("host", 61613)),
    ("stomp+ssl://host:61614", Address("host", 61614, tls=True)),
    ("STOMP://Host:1", Address("host", 1)),
    ("stomp://host", Address("host", 61613)),
    ("stomp+ssl://host", Address("host", 61614, tls=True)),
    ("stomp://host:65535/", Address("host", 65535)),
    ("stomp://127.0.0.1:5", Address("127.0.0.1", 5)),
    ("stomp://[::1]:5", Address("::1", 5)),
    ("  stomp://host:5 ", Address("host", 5)),
    ("amqp://host", Address("host", 5672, protocol="amqp")),
    ("AMQP://host:1", Address("host", 1, protocol="amqp")),
    ("amqps://host", Address("host", 5671, tls=True, protocol="amqp")),
    ("amqps://[::1]:5", Address("::1", 5, tls=True, protocol="amqp")),
    ("amqp://host/", Address("host", 5672, protocol="amqp")),
    ("amqp://host:5/%2F", Address("host", 5, protocol="amqp")),
    ("amqp://host:5/orders", Address("host", 5, protocol="amqp", virtual_host="orders")),
    ("stomp+ssl://host/orders", Address("host", 61614, tls=True, virtual_host="orders")),
    ("stomp://[::1]:5/%2Fprod%2fb%25c%2c%40", Address("::1", 5, virtual_host="/prod/b%c,@")),
    ("stomp://host:5/B%C3%BCro+1 a", Address("host", 5, virtual_host="Büro+1 a")),
    ("stomp://host:5/vhost:dev", Address("host", 5, virtual_host="vhost:dev")),
]


@pytest.mark.parametrize(("text", "address"), ONE)
def test_reads_it_and_what_it_writes(text, address):
    assert parse_broker_url(text) == (address,)
    assert parse_broker_url(str(address)) == (address,)


def test_a_list_keeps_its_order():
    assert parse_broker_url("stomp://b:2, stomp://a:1,stomp://b:2") == (
        Address("b", 2),
        Address("a", 1),
        Address("b", 2),
    )
    both = parse_broker_url("stomp+ssl://a,STOMP+SSL://b:1")
    assert both == (Address("a", 61614, tls=True), Address("b", 1, tls=True))


def test_a_list_of_one_virtual_host():
    assert [each.virtual_host for each in parse_broker_url("amqp://a/x, amqp://b/%78")] == ["x", "x"]
    assert [each.virtual_host for each in parse_broker_url("amqp://a,amqp://b/,amqp://c/%2F")] == ["/"] * 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("tcp://host:61616", r"usually 61613.* 5672.*; tcp:// is the protocol of the broker's Java clients .*61616"),
        ("TCP://host:61616", "tcp:// is the protocol"),
        ("ssl://host:61617", r"with TLS 61614.*; ssl:// is the protocol of .* over TLS"),
        ("amqp+ssl://host:5671", "AMQP over TLS is amqps://"),
        ("http://host:8161", "http:// is the web console"),
        ("stomps://host:61614", r"STOMP over TLS is stomp\+ssl://"),
        ("failover:(tcp://a:61616,tcp://b:61616)", r"stomp://HOST1:PORT,stomp://HOST2:PORT"),
        ("(tcp://a:61616,tcp://b:61616)?ha=true", r"stomp://HOST1:PORT,stomp://HOST2:PORT"),
        ("stomp://a:61613,tcp://b:61616", "tcp:// is the protocol"),
        ("foo://host:1", "stomp://HOST:PORT or amqp"),
    ],
)
def test_an_address_of_another_protocol_is_refused_with_a_reason(text, reason):
    with pytest.raises(ValueError, match=reason) as refused:
        parse_broker_url(text)
    assert str(refused.value).startswith("an address reads stomp://HOST:PORT or amqp://HOST:PORT")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "stomp://HOST:PORT"),
        ("host:61613", "stomp://HOST:PORT"),
        ("stomp://a:1,", "stomp://HOST:PORT"),
        ("stomp:host:1", "stomp://HOST:PORT"),
        ("stomp://", "needs a host"),
        ("stomp://:61613", "needs a host"),
        ("stomp://host:0", "1 to 65535"),
        ("stomp://host:65536", "1 to 65535"),
        ("stomp://host:-1", "1 to 65535"),
        ("stomp://host:abc", "1 to 65535"),
        ("amqp://host:1/orders/invoices", "a slash in the name is written %2F"),
        ("amqp://host:1/orders/", "a slash in the name is written %2F"),
        ("amqp://host:1//", "a slash in the name is written %2F"),
        ("amqp://host:1/a%", "percent-encoding"),
        ("amqp://host:1/a%2g", "percent-encoding"),
        ("amqp://host:1/%ff", "percent-encoding"),
        ("stomp://host:1/a%0Ab", "printable"),
        ("stomp://host:1/a%00", "printable"),
        ("stomp://host:1/\ud800", "printable"),
        ("stomp://host:1?a=b", "nothing after"),
        ("stomp://host:1/a?b=c", "nothing after"),
        ("stomp://host:1#a", "nothing after"),
        ("stomp://[::1", "in brackets"),
        ("stomp://a\u2100b:1", "in brackets"),
        ("amqp://a,stomp://a", "one protocol"),
        ("stomp+ssl://a:1,stomp://b:2", "TLS.*unencrypted"),
        ("stomp://b:2, stomp+ssl://a:1", "TLS.*unencrypted"),
        ("amqps://a,amqp://b", "TLS.*unencrypted"),
        ("amqp://a/x,amqp://b/y", "one virtual host: write the same path after each of them"),
        ("stomp://a/x,stomp://b", "one virtual host"),
        ("stomp://a,stomp://b:1/x", "one virtual host"),
    ],
)
def test_refuses(text, wanted):
    with pytest.raises(ValueError, match=wanted):
        parse_broker_url(text)


@pytest.mark.parametrize(
    "text",
    [
        "stomp://user:SECRET@host:1",
        "stomp://user:SECRET@host:99999",
        "stomp://user:SECRET\u2100@host:1",
        "stomp://user:SECRET@[::1",
        "stomp://a:1,stomp://user:SECRET@host",
        "failover:(tcp://user:SECRET@host:1)",
        "ssl://user:SECRET@host:1",
        "tcp://user:SECRET@host:1",
    ],
)
def test_a_password_in_the_url_is_refused_and_not_repeated(text):
    with pytest.raises(ValueError, match=r"do not belong in the URL|reads stomp://") as error:
        parse_broker_url(text)
    assert "SECRET" not in str(error.value)
