import pytest

from pyspark_jms.delivery.staging.tokens import MAX_TOKEN_DELIVERIES, Sighting, SourceToken, is_token, is_worn

TOKEN = SourceToken(id="s", name="t", next=7, floor=3)


def test_the_text_of_a_token_is_the_token_and_is_stable():
    assert TOKEN.text() == '{"id":"s","name":"t","next":7,"floor":3}'
    assert SourceToken.parse(TOKEN.text()) == TOKEN
    assert is_token(TOKEN.text())


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"id":"s","name":"t","next":7}', '{"id":"s","name":"t","next":"7","floor":3}']
)
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match=r"not a token|not an offset|Expecting value"):
        SourceToken.parse(text)
    assert not is_token(text)


def test_a_token_is_worn_long_before_the_limit_of_a_broker():
    fresh, worn = Sighting(TOKEN, MAX_TOKEN_DELIVERIES - 1), Sighting(TOKEN, MAX_TOKEN_DELIVERIES)
    assert not is_worn([])
    assert not is_worn([fresh, fresh])
    assert is_worn([fresh, worn])
    assert MAX_TOKEN_DELIVERIES < 10 / 2, "the renewal may fail as often again"
