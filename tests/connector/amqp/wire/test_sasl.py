import pytest

from pyspark_jms.amqp.wire.sasl import Login, sasl_init
from pyspark_jms.jms.secret_text import SecretText

USER = Login(user="me", password=SecretText("p\u00e4ss"))


@pytest.mark.parametrize(
    ("login", "offered", "mechanism", "response"),
    [
        (USER, ("ANONYMOUS", "PLAIN"), "PLAIN", b"\0me\0p\xc3\xa4ss"),
        (Login(user="me"), ("PLAIN",), "PLAIN", b"\0me\0"),
        (Login(), ("PLAIN", "ANONYMOUS"), "ANONYMOUS", b""),
        (Login(external=True), ("ANONYMOUS", "EXTERNAL"), "EXTERNAL", b""),
        (Login(external=True), ("ANONYMOUS",), "ANONYMOUS", b""),
    ],
)
def test_the_best_mechanism_that_both_have(login, offered, mechanism, response):
    init = sasl_init(login, offered, "h")
    assert (init.mechanism, init.initial_response, init.hostname) == (mechanism, response, "h")


def test_a_password_is_sent_by_no_other_mechanism():
    assert sasl_init(USER, ("ANONYMOUS", "SCRAM-SHA-1"), None) is None


def test_a_login_is_not_shown():
    assert "p\u00e4ss" not in repr(USER)
