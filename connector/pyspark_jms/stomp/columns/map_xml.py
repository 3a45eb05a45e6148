"""Maps as XML, from ActiveMQ Classic's transformation ``jms-xml`` → column ``map``.

Reads one text at a time, and accepts only the elements that XStream writes for a map: no declarations, no external
documents. Does not know headers and frames.
"""

import re

import pyarrow as pa

from pyspark_jms.columns.envelope import Element, Elements, EnvelopeKind, Unreadable, column_of
from pyspark_jms.jms.model import BodyType
from pyspark_jms.jms.rules import element_value_problem
from pyspark_jms.jms.subscription import MAX_ELEMENTS, too_many

__all__ = ["read_xml"]

_TYPES = {"byte-array": "bytes"} | {
    name: name for name in ("boolean", "byte", "short", "int", "long", "float", "double", "char", "string")
}
_MAP = re.compile(r"\s*(?:<map/>|<map>(?P<entries>.*)</map>)\s*", re.DOTALL)
_ENTRY = re.compile(
    r"\s*<entry>\s*<string>(?P<name>[^<]*)</string>\s*"
    rf"(?:<null/>|<(?P<type>{'|'.join(_TYPES)})(?:/>|>(?P<value>[^<]*)</(?P=type)>))\s*</entry>\s*"
)
_REFERENCE = re.compile(r"&(?:#(?P<decimal>[0-9]{1,7})|#x(?P<hex>[0-9a-fA-F]{1,6})|(?P<name>[a-z]{2,4}));|&")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_NO_MAP = "body is not the XML of a map"


def read_xml(kind: EnvelopeKind, texts: pa.Array, max_elements: int = MAX_ELEMENTS) -> Elements:
    """The elements of each text of a binary column."""
    assert kind is BodyType.MAP, "the broker transforms no streams"
    found: list[list[Element] | None] = []
    reasons = {}
    for row, text in enumerate(texts.to_pylist()):
        try:
            found.append(_elements(text, max_elements))
        except Unreadable as unreadable:
            found.append(None)
            reasons[row] = str(unreadable)
    return Elements(column_of(kind, found), reasons)


def _elements(data: bytes, most: int) -> list[Element]:
    try:
        whole = _MAP.fullmatch(data.decode())
    except UnicodeDecodeError:
        raise Unreadable("text is not valid UTF-8") from None
    if whole is None:
        raise Unreadable(_NO_MAP)
    entries = whole["entries"] or ""
    elements: dict[str, Element] = {}
    at = number = 0
    while at < len(entries) and (entry := _ENTRY.match(entries, at)):
        number += 1
        if number > most:
            raise Unreadable(f"the map has {too_many('elements', most)}")
        element = _element(entry, number)
        elements[element["name"] or ""] = element
        at = entry.end()
    if entries[at:].strip():
        raise Unreadable(_NO_MAP)
    return list(elements.values())


def _element(entry: re.Match[str], number: int) -> Element:
    kind = _TYPES.get(entry["type"] or "", "string")
    value = None if entry["type"] is None else _plain(entry["value"] or "")
    if value is not None and kind == "bytes":
        value = "".join(value.split())  # base64 may have line ends
    if value is not None and element_value_problem(kind, value):
        raise Unreadable(f"element {number} of the map is not of type {kind}")
    return {"name": _plain(entry["name"]), "type": kind, "value": value}


def _plain(text: str) -> str:
    return _REFERENCE.sub(_character, text)


def _character(reference: re.Match[str]) -> str:
    if reference["name"] in _NAMED:
        return _NAMED[reference["name"]]
    code = int(reference["decimal"] or "0") or int(reference["hex"] or "0", 16)
    surrogate = range(0xD800, 0xE000)
    if not code or code in surrogate or code > 0x10FFFF:  # noqa: PLR2004 - the last code point of Unicode
        raise Unreadable(_NO_MAP)
    return chr(code)
