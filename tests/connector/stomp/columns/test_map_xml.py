import math

import pyarrow as pa
import pytest

from pyspark_jms.jms.model import BodyType
from pyspark_jms.stomp.columns.map_xml import read_xml

# As ActiveMQ Classic 6.3.1 wrote it.
SEEN = """<map>
  <entry>
    <string>bb</string>
    <byte-array>AP8=</byte-array>
  </entry>
  <entry>
    <string>k ä&lt;&gt;&amp;:
</string>
    <string>]]&gt; &amp;#0; &quot;&apos; &#x1;&#x1f;&#xd;</string>
  </entry>
  <entry>
    <string>c</string>
    <char>&lt;</char>
  </entry>
  <entry>
    <string>d</string>
    <double>-0.0</double>
  </entry>
  <entry>
    <string>f</string>
    <float>1.6777216E7</float>
  </entry>
  <entry>
    <string>n</string>
    <null/>
  </entry>
  <entry>
    <string>e</string>
    <string></string>
  </entry>
  <entry>
    <string>l</string>
    <long>-9223372036854775808</long>
  </entry>
</map>"""


def read(*texts):
    found = read_xml(BodyType.MAP, pa.array([text.encode() for text in texts], pa.binary()))
    return [None if row is None else dict(row) for row in found.column.to_pylist()], found.reasons


def test_what_a_broker_wrote():
    (found,), reasons = read(SEEN)
    assert not reasons
    assert {name: (element["type"], element["value"]) for name, element in found.items()} == {
        "bb": ("bytes", "AP8="),
        "k ä<>&:\n": ("string", "]]> &#0; \"' \x01\x1f\r"),
        "c": ("char", "<"),
        "d": ("double", "-0.0"),
        "f": ("float", "1.6777216E7"),
        "n": ("string", None),
        "e": ("string", ""),
        "l": ("long", "-9223372036854775808"),
    }
    assert math.copysign(1, float(found["d"]["value"])) == -1


@pytest.mark.parametrize("empty", ["<map/>", "<map></map>", "<map>\n</map>\n"])
def test_an_empty_map(empty):
    assert read(empty) == ([{}], {})


def test_base64_in_lines():
    (found,), _ = read("<map><entry><string>b</string><byte-array>AP\n8=\n</byte-array></entry></map>")
    assert found["b"]["value"] == "AP8="


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "<map>",
        "<map>x</map>",
        "<map><entry/></map>",
        "<map><entry><string>a</string></entry></map>",
        "<map><entry><string>a</string><big-int>1</big-int></entry></map>",
        "<map><entry><string>a</string><int>1</long></entry></map>",
        "<map><entry><string>a &nbsp; b</string><int>1</int></entry></map>",
        "<map><entry><string>a & b</string><int>1</int></entry></map>",
        "<map><entry><string>&#0;</string><int>1</int></entry></map>",
        "<map><entry><string>&#xd83d;</string><int>1</int></entry></map>",
        "<map><entry><string>&#x110000;</string><int>1</int></entry></map>",
        '<!DOCTYPE m [<!ENTITY x "y">]><map><entry><string>&x;</string><int>1</int></entry></map>',
    ],
)
def test_what_is_no_map(text):
    assert read(text) == ([None], {0: "body is not the XML of a map"})


def test_a_value_that_is_not_of_its_type():
    wrong = "<map><entry><string>a</string><int>1</int></entry><entry><string>b</string><int>1.5</int></entry></map>"
    assert read(wrong) == ([None], {0: "element 2 of the map is not of type int"})


def test_bytes_that_are_no_text():
    found = read_xml(BodyType.MAP, pa.array([b"<map>\xff</map>"], pa.binary()))
    assert found.reasons == {0: "text is not valid UTF-8"}


def test_each_text_by_itself():
    good = "<map><entry><string>a</string><boolean>true</boolean></entry></map>"
    found, reasons = read(good, "x", "<map/>")
    assert found == [{"a": {"type": "boolean", "value": "true"}}, None, {}]
    assert list(reasons) == [1]


def test_many_entries_take_no_time_by_the_square_of_their_number():
    entries = "".join(f"<entry><string>k{n}</string><int>{n}</int></entry>" for n in range(50_000))
    (found,), _ = read(f"<map>{entries}</map>")
    assert len(found) == 50_000


def test_a_map_with_too_many_entries_is_not_read():
    """Entries of one name count, too."""
    entry = "<entry><string>a</string><int>1</int></entry>"
    found = read_xml(BodyType.MAP, pa.array([f"<map>{entry * 11}</map>", f"<map>{entry * 10}</map>"], pa.binary()), 10)
    assert found.reasons == {0: "the map has more elements than maxMessageElements (10)"}
    assert found.column.to_pylist()[1] == [("a", {"type": "int", "value": "1"})]
