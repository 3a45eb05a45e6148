import json
from dataclasses import asdict, replace

import pytest

from pyspark_jms.delivery.register.token import (
    MAX_VALUE_DELIVERIES,
    LoneMessage,
    Offset,
    StoredToken,
    Token,
    needs_renewal,
)

TOKEN = Token(stream="s", name="t", reader=1, batch=4, blocks=2, first=10, next=20)
OFFSET = Offset(stream="s", address="a", broker="b", batch=4, names=("t", "u"), used=(4, 3), next=(7, 6))


def test_the_text_of_a_token_is_the_token_and_is_stable():
    text = '{"stream":"s","name":"t","reader":1,"batch":4,"blocks":2,"first":10,"next":20}'
    assert TOKEN.text() == text
    assert Token.parse(text) == TOKEN
    full = replace(TOKEN, drained=True, alone=LoneMessage(message="m", deliveries=5), metrics=(("bytes", 9),))
    assert Token.parse(full.text()) == full


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        TOKEN.text().replace("4", '"4"'),
        TOKEN.text()[:-1] + ',"alone":{"message":1,"deliveries":5}}',
        TOKEN.text()[:-1] + ',"alone":{"message":"m","deliveries":5,"many":null}}',
        TOKEN.text()[:-1] + ',"metrics":{"bytes":"9"}}',
    ],
)
def test_another_text_is_no_token(text):
    with pytest.raises(ValueError, match=r"not a token|Expecting value"):
        Token.parse(text)


def test_a_token_is_renewed_long_before_the_limit_of_a_broker():
    fresh, often = StoredToken(TOKEN, MAX_VALUE_DELIVERIES - 1), StoredToken(TOKEN, MAX_VALUE_DELIVERIES)
    assert not needs_renewal([])
    assert not needs_renewal([fresh, fresh])
    assert needs_renewal([fresh, often])
    assert MAX_VALUE_DELIVERIES < 10 / 2, "the renewal may fail as often again"


def test_an_offset_survives_sparks_log():
    logged = json.loads(json.dumps(asdict(OFFSET)))
    assert Offset.parse(logged) == OFFSET
    assert Offset.parse(asdict(Offset())) == Offset()
    del logged["next"]
    earlier = Offset.parse(logged)
    assert (earlier, earlier.next_of(1)) == (replace(OFFSET, next=()), 0), "of an earlier release"


@pytest.mark.parametrize(
    "value",
    ["", {}, *(asdict(OFFSET) | {name: other} for name, other in [("used", [4]), ("names", ["t", 1]), ("next", 7)])],
)
def test_another_value_is_no_offset(value):
    with pytest.raises(ValueError, match="not an offset"):
        Offset.parse(value)


def test_the_readers_of_a_batch_are_those_that_it_used_last():
    assert OFFSET.readers == (0,)
    assert Offset().readers == ()
