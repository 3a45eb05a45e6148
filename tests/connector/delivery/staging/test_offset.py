import pytest

from pyspark_jms.delivery.staging.offset import Offset


@pytest.mark.parametrize(
    "offset", [Offset(), Offset(id="s", token="t", seq=0), Offset(id="s", token="t", seq=9, cuts=(4, 7))]
)
def test_the_text_of_an_offset_is_the_offset(offset):
    assert Offset.parse(offset.text()) == offset


def test_the_text_is_stable():
    text = '{"id":"s","token":"t","seq":9,"cuts":[4,7]}'
    assert Offset(id="s", token="t", seq=9, cuts=(4, 7)).text() == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "7",
        '{"seq":3}',
        '{"id":"s","token":"t","seq":"9","cuts":[]}',
        '{"id":1,"token":"t","seq":9,"cuts":[]}',
        '{"id":"s","token":"t","seq":9,"cuts":["4"]}',
    ],
)
def test_another_text_is_refused(text):
    with pytest.raises(ValueError, match=r"not a token|not an offset|Expecting value"):
        Offset.parse(text)
