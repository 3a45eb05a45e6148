import base64

import pytest
from scramp import ScramMechanism

from pyspark_jms.amqp.wire.sasl import Login, LoginRefusedError, SaslExchange
from pyspark_jms.jms.secret_text import SecretText

USER = Login(user="me", password=SecretText("p\u00e4ss"), host="h", port=5671)
SCRAM = ("SCRAM-SHA-512", "SCRAM-SHA-256")


@pytest.mark.parametrize(
    ("login", "offered", "mechanism", "response"),
    [
        (USER, ("ANONYMOUS", "PLAIN"), "PLAIN", b"\0me\0p\xc3\xa4ss"),
        (Login(user="me"), ("PLAIN",), "PLAIN", b"\0me\0"),
        (Login(user="me"), (*SCRAM, "OAUTHBEARER", "PLAIN"), "PLAIN", b"\0me\0"),
        (Login(), ("PLAIN", "ANONYMOUS"), "ANONYMOUS", b""),
        (Login(external=True), ("ANONYMOUS", "EXTERNAL"), "EXTERNAL", b""),
        (Login(external=True), ("ANONYMOUS",), "ANONYMOUS", b""),
        (Login(user="me", password=SecretText("p"), external=True), ("EXTERNAL",), "EXTERNAL", b""),
        (Login(user="me", password=SecretText("p"), external=True), ("EXTERNAL", "PLAIN"), "PLAIN", b"\0me\0p"),
        # RFC 7628 section 4.1, with a name that GS2 must escape
        (
            Login(user="a=b,c", password=SecretText("vF9df"), host="server", port=143),
            ("XOAUTH2", "OAUTHBEARER"),
            "OAUTHBEARER",
            b"n,a=a=3Db=2Cc,\1host=server\1port=143\1auth=Bearer vF9df\1\1",
        ),
        (Login(user="me", password=SecretText("tok")), ("XOAUTH2",), "XOAUTH2", b"user=me\1auth=Bearer tok\1\1"),
    ],
)
def test_the_best_mechanism_that_both_have(login, offered, mechanism, response):
    init = SaslExchange(login, "h").init(offered)
    assert (init.mechanism, init.initial_response, init.hostname) == (mechanism, response, "h")


def test_a_password_is_sent_by_no_other_mechanism():
    with pytest.raises(LoginRefusedError, match="offers ANONYMOUS, SCRAM-SHA-1; this login can use SCRAM-SHA-512, "):
        SaslExchange(USER, None).init(("ANONYMOUS", "SCRAM-SHA-1"))


def test_kerberos_is_refused_with_a_sentence():
    with pytest.raises(LoginRefusedError, match="Kerberos is not supported"):
        SaslExchange(USER, None).init(("GSSAPI",))


def test_a_login_is_not_shown():
    assert "p\u00e4ss" not in repr(USER)


class ScramServer:
    """The server of the package scramp, with one user."""

    def __init__(self, mechanism, password="p\u00e4ss"):
        self.mechanism = ScramMechanism(mechanism)
        information = self.mechanism.make_auth_info(password)
        self.server = self.mechanism.make_server(lambda _user: information)

    def first(self, message):
        self.server.set_client_first(message.decode())
        return self.server.get_server_first().encode()

    def final(self, message):
        self.server.set_client_final(message.decode())
        return self.server.get_server_final().encode()


@pytest.mark.parametrize("mechanism", SCRAM)
@pytest.mark.parametrize("in_outcome", [True, False])
def test_scram_proves_the_password_without_sending_it(mechanism, in_outcome):
    exchange, server = SaslExchange(USER, "h"), ScramServer(mechanism)
    init = exchange.init((mechanism, "PLAIN"))
    response = exchange.response(server.first(init.initial_response))
    final = server.final(response)
    if in_outcome:
        exchange.finish(final)
    else:
        assert exchange.response(final) == b""
        exchange.finish(None)
    assert init.mechanism == mechanism
    assert b"p\xc3\xa4ss" not in init.initial_response + response


def test_the_strongest_mechanism_comes_first():
    assert SaslExchange(USER, "h").init(("PLAIN", *reversed(SCRAM))).mechanism == "SCRAM-SHA-512"


def _after_response():
    exchange = SaslExchange(USER, "h")
    exchange.response(ScramServer("SCRAM-SHA-256").first(exchange.init(SCRAM[1:]).initial_response))
    return exchange


@pytest.mark.parametrize("data", [None, b"", b"v=" + base64.b64encode(b"x" * 32), b"e=other-error", b"\xff"])
def test_a_server_that_does_not_prove_the_password_is_refused(data):
    exchange = _after_response()
    with pytest.raises(LoginRefusedError, match="not the one that proves the password"):
        exchange.finish(data)


@pytest.mark.parametrize(
    "challenge",
    [b"", b"\xff", b"r=other,s=QSXCR+Q6sek8bf92aaaaaaaa,i=4096", b"r=x", b"v=AAAA"],
)
def test_a_challenge_that_is_not_scram_is_refused(challenge):
    exchange = SaslExchange(USER, "h")
    exchange.init(SCRAM)
    with pytest.raises(LoginRefusedError, match="SCRAM message"):
        exchange.response(challenge)


@pytest.mark.parametrize("count", ["1", "4095", "0", "600001", "2147483647", "9" * 5_000, "4096,i=4294967296"])
def test_a_number_of_iterations_is_refused_before_anything_is_computed(count):
    exchange = SaslExchange(USER, "h")
    first = exchange.init(SCRAM).initial_response.decode()
    challenge = f"r={first.partition('r=')[2]}server,s=QSXCR+Q6sek8bf92aaaaaaaa,i={count}"
    with pytest.raises(LoginRefusedError, match=r"SCRAM iterations.* 4,096 to 600,000"):
        exchange.response(challenge.encode())


@pytest.mark.parametrize("count", [4_096, 600_000])
def test_the_bounds_themselves_are_accepted(count):
    exchange = SaslExchange(USER, "h")
    first = exchange.init(SCRAM).initial_response.decode()
    challenge = f"r={first.partition('r=')[2]}server,s=QSXCR+Q6sek8bf92aaaaaaaa,i={count}"
    assert exchange.response(challenge.encode()).startswith(b"c=")


def test_an_error_of_the_server_is_a_refusal():
    with pytest.raises(LoginRefusedError, match="the login was refused"):
        _after_response().response(b"e=invalid-proof")


def test_a_challenge_after_the_proof_is_refused():
    exchange, server = SaslExchange(USER, "h"), ScramServer(SCRAM[0])
    exchange.response(server.final(exchange.response(server.first(exchange.init(SCRAM[:1]).initial_response))))
    with pytest.raises(LoginRefusedError, match="after its last one"):
        exchange.response(b"more")


def test_a_second_challenge_of_a_mechanism_without_proof_is_refused():
    """A server that challenges without an end would fill the memory with answers."""
    login = Login(user="me", password=SecretText("secret"), host="h", port=1)
    exchange = SaslExchange(login, "h")
    exchange.init(["OAUTHBEARER"])
    assert exchange.response(b'{"status": "invalid_token"}') == b"\1"
    with pytest.raises(LoginRefusedError, match="after its last one"):
        exchange.response(b"more")


def test_a_user_that_scram_does_not_allow_is_refused_without_showing_it():
    login = Login(user="me", password=SecretText("sec\x07ret"))
    with pytest.raises(LoginRefusedError, match="does not allow") as caught:
        SaslExchange(login, "h").init(SCRAM)
    assert "sec" not in str(caught.value)
