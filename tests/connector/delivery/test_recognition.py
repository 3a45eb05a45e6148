from pyspark_jms.delivery.recognition import Recognition, other_content
from pyspark_jms.errors import OtherBrokerError


def test_says_what_happened_and_what_to_do():
    error = other_content()
    assert isinstance(error, OtherBrokerError)
    assert str(error).startswith("[JMS_OTHER_BROKER] ")
    assert "brokerUrl" in error.remedy


def test_is_two_questions_about_a_message():
    known = Recognition(identity=lambda identifier: identifier[2:], fingerprint=lambda run, index: run[index])
    assert (known.identity(b"1,7"), known.fingerprint([b"a", b"b"], 1)) == (b"7", b"b")
