"""Class of differences -> selectors of that class, and the messages on which engines are compared."""

from jms_selector import Kind, Message, Value
from jms_selector.portability import DIFFERENCES

_FULL = Message.of(
    i=5, j=-5, n=8, l=3_000_000_000, d=5.5, t=-0.25, e=100000.0, s="a", o="", x="axb", q="50%", b=True, c=False
)
_BLUE = Message.of(i=3, j=7, n=0, l=5, d=0.0, t=0.5, e=0.5, s="blue", o="x", x="a!xb", q="a_b", b=False, c=True)
_PRESENT = (_FULL, _BLUE)
_MISSING = (*_PRESENT, Message.of(i=5), Message())
_TYPES = (
    _FULL,
    Message.of(i="5", s=5, t="x", b="true"),
    Message.of(i=True, s=True, t=1, b=1),
    Message(
        properties={
            "i": Value(Kind.BYTE, 5),
            "j": Value(Kind.SHORT, -5),
            "s": Value(Kind.FLOAT, 5.0),
            "t": Value(Kind.DOUBLE, 5.0),
        }
    ),
)

CASES = {
    "not": (("NOT i = 3", "NOT i = 9 AND i = 5", "NOT s IN ('x')", "NOT i IS NULL", "NOT i BETWEEN 6 AND 9"), _PRESENT),
    "not-not": (("NOT NOT b", "NOT NOT (i = 5)"), _PRESENT),
    "missing": (
        (
            "m <> 1", "m <> 'a'", "NOT (m = 1)", "NOT (NOT (m = 1))", "m NOT IN ('a')", "m NOT LIKE 'a'",
            "m NOT LIKE '%'", "m NOT BETWEEN 1 AND 2", "NOT (m BETWEEN 1 AND 2)", "NOT (m IN ('a'))", "NOT (m > 1)",
        ),
        _MISSING,
    ),
    "right": (("i <> m", "1 <> m", "m = k", "i = j", "i <> j", "'a' <> m"), _MISSING),
    "small-minus": (("t > -0.5", "t = -0.25", "d <> -0.5"), _PRESENT),
    "sign": (("i = +5", "i = --5", "t > -.5", "t < +0.5"), _PRESENT),
    "division": (("i / 2 = 2", "i / 2 = 2.5", "7 / 2 = 3"), _PRESENT),
    "zero": (("i / 0 = 1 OR i = 5", "i = 5 OR i / 0 = 1", "100 / 0 > 1 OR i = 5"), _PRESENT),
    "grouping": (
        ("10 - 5 - 2 = 3", "8 / 2 * 2 = 8", "i - 1 + 1 = 5", "2 * 8 / 4 * 2 = 8", "10 - 2 * 3 + 5 = 9"),
        _PRESENT,
    ),
    "parentheses": (("(i + 1) * 2 = 12", "10 - (5 - 2) = 7", "i * (j + 6) = 5"), _PRESENT),
    "calculation": (("s * 2 > 5 OR i = 5", "NOT (s + 1 = 2)", "-s < 5 OR i = 5", "s + 1 = 'a1'", "-i = -5"), _TYPES),
    "unlike": (
        ("NOT (s = 1) OR s = 'a'", "s <> 1 AND s <> 'b'", "s = 1 OR s = 'a' OR i = 5", "s = 5 OR NOT (s LIKE 'x')"),
        _TYPES,
    ),
    "number": (
        ("i = 05", "n = 010", "010 = n", "i = 0x5", "i = 5L", "i = 5f", "d = 5.5d", "d = 5.5f", "n = 010 OR i = 010"),
        _PRESENT,
    ),
    "large": (("l = 3000000000", "l > 2147483648", "l > -9223372036854775808"), _PRESENT),
    "exponent": (("i = 5E+0", "d = 55e-1", "e = 1e5", "e > 1E4"), _PRESENT),
    "empty": (("o = ''", "o IN ('')", "o <> ''", "NOT (o = '')", "o LIKE ''"), _PRESENT),
    "like": (("s LIKE 'blu'", "s LIKE '_'", "s LIKE 'b%'", "o LIKE 'a%'", "o LIKE '_'"), _PRESENT),
    "percent": (("s LIKE '%%'", "o LIKE '%%'", "q LIKE '%%!%' ESCAPE '!'", "m NOT LIKE '%%'"), _MISSING),
    "escaped": (("q LIKE '50!%' ESCAPE '!'", "q LIKE '%!%%' ESCAPE '!'", "q LIKE 'a!_b' ESCAPE '!'"), _PRESENT),
    "escape": (("x LIKE 'a!xb' ESCAPE '!'", "x LIKE 'a!!!xb' ESCAPE '!'"), _PRESENT),
    "whole": (("d >= 0", "t >= 0", "t BETWEEN 0 AND 100", "t <= 0"), _PRESENT),
    "two": (("i < j", "j >= i", "s < x", "s >= s"), _PRESENT),
    "name": (("été = 5", '"i" = 5'), (*_PRESENT, Message.of(été=5))),
    "value": (("m + 1 IS NULL", "i = 5 = TRUE", "b = (i = 5)", "(i > 3) <> FALSE"), _PRESENT),
    "mode": (
        ("JMSDeliveryMode LIKE 'NON%'", "JMSDeliveryMode NOT LIKE '%PERS%'", "s = JMSDeliveryMode"),
        (
            Message.of({"JMSDeliveryMode": "PERSISTENT"}, s="PERSISTENT"),
            Message.of({"JMSDeliveryMode": "NON_PERSISTENT"}, s="PERSISTENT"),
        ),
    ),
    "comment": (("i = 5 /* c */", "/* c */ i = 5"), _PRESENT),
}  # fmt: skip
assert CASES.keys() == DIFFERENCES.keys()
