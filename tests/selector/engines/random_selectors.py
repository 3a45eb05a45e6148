"""Random conditions on properties of a known type, and messages with them. A seed always gives the same."""

from random import Random

from jms_selector import Kind, Message, Value

WHOLES, FRACTIONS, TEXTS = ("i", "j", "k"), ("d", "t"), ("s", "u")
SCHEMA = {
    **dict.fromkeys(WHOLES, "bigint"),
    **dict.fromkeys(FRACTIONS, "double"),
    **dict.fromkeys(TEXTS, "string"),
    "b": "boolean",
}
_WORDS = ("red", "blue", "blu", "a_b", "50%", "5", "its")
_PATTERNS = ("r%", "%e", "_lu_", "blu", "%", "%%", "a!_b' ESCAPE '!", "50!%' ESCAPE '!", "%!%%' ESCAPE '!")
_TIMES = (1, 1_700_000_000_000, 1_700_000_000_001, 3_000_000_000)
_MODES = ("PERSISTENT", "NON_PERSISTENT")
_IDS = ("ID:a-1", "ID:b-2", "ID:5")
_TEXT_HEADERS = {"JMSDeliveryMode": _MODES, "JMSMessageID": _IDS, "JMSCorrelationID": _WORDS, "JMSType": _WORDS}


class RandomSelectors:
    def __init__(self, seed, *, calculations=False, headers=False):
        self._random = Random(seed)
        self._calculations, self._headers = calculations, headers

    def text(self, depth=3):
        pick = self._random.random()
        if depth == 0 or pick < 0.4:
            return self._condition()
        if pick < 0.55:
            return f"NOT ({self.text(depth - 1)})"
        word = self._random.choice((" AND ", " OR "))
        return "(" + word.join(self.text(depth - 1) for _ in range(self._random.randint(2, 3))) + ")"

    def message(self):
        values = {
            **{name: self._random.choice((-5, -1, 0, 1, 3, 5, 100, 3_000_000_000)) for name in WHOLES},
            **{name: self._random.choice((-5.0, -0.5, -0.25, 0.0, 0.25, 0.5, 2.5, 5.0, 1e10)) for name in FRACTIONS},
            **{name: self._random.choice((*_WORDS, "", "a%b")) for name in TEXTS},
            "b": self._random.random() < 0.5,
        }
        kept = {name: value for name, value in values.items() if self._random.random() < 0.7}
        properties = {name: _value(value) for name, value in kept.items()}
        return Message(self._header_values() if self._headers else {}, properties)

    def _header_values(self):
        one_of = self._random.choice
        values = {
            "JMSPriority": Value(Kind.INT, self._random.randint(0, 9)),
            "JMSTimestamp": Value(Kind.LONG, one_of(_TIMES)),
            "JMSDeliveryMode": Value(Kind.STRING, one_of(_MODES)),
            "JMSMessageID": Value(Kind.STRING, one_of(_IDS)),
            "JMSCorrelationID": Value(Kind.STRING, one_of((*_WORDS, "", "a%b"))),
            "JMSType": Value(Kind.STRING, one_of((*_WORDS, ""))),
        }
        for name in ("JMSCorrelationID", "JMSType"):
            if self._random.random() < 0.3:
                del values[name]
        return values

    def _condition(self):
        one_of = self._random.choice
        kinds = ["number", "number", "text", "list", "pattern", "between", "null", "truth", "two"]
        if self._headers and self._random.random() < 0.7:
            return self._header_condition()
        match one_of([*kinds, "calculation"] if self._calculations else kinds):
            case "number":
                return f"{self._number()} {one_of(('=', '<>', '<', '<=', '>', '>='))} {self._literal()}"
            case "text":
                return f"{one_of(TEXTS)} {one_of(('=', '<>'))} '{one_of(_WORDS)}'"
            case "list":
                words = ", ".join(f"'{one_of(_WORDS)}'" for _ in range(self._random.randint(1, 3)))
                return f"{one_of(TEXTS)} {one_of(('', 'NOT '))}IN ({words})"
            case "pattern":
                return f"{one_of(TEXTS)} {one_of(('', 'NOT '))}LIKE '{one_of(_PATTERNS)}'"
            case "between":
                return f"{self._number()} {one_of(('', 'NOT '))}BETWEEN {self._literal()} AND {self._literal()}"
            case "null":
                return f"{one_of((*SCHEMA,))} IS {one_of(('', 'NOT '))}NULL"
            case "truth":
                return one_of(("b", "NOT b", "b = TRUE", "b <> FALSE"))
            case "two":
                return f"{one_of(WHOLES)} {one_of(('=', '<>', '<', '>='))} {one_of(WHOLES)}"
        terms = [f"{one_of((self._number(), self._literal()))} {one_of('+-*/')}" for _ in range(one_of((1, 2, 3)))]
        return f"{' '.join(terms)} 2 > {self._literal()}"

    def _header_condition(self):
        one_of = self._random.choice
        name = one_of((*_TEXT_HEADERS, "JMSPriority", "JMSTimestamp"))
        match name, one_of(("compare", "list", "pattern", "between", "null", "two")):
            case (("JMSPriority" | "JMSTimestamp"), "between"):
                return f"{name} {one_of(('', 'NOT '))}BETWEEN {self._time_or_priority(name)} AND {self._literal()}"
            case (("JMSPriority" | "JMSTimestamp"), "two"):
                return f"{name} {one_of(('=', '<>', '<', '>='))} {one_of(WHOLES)}"
            case (("JMSPriority" | "JMSTimestamp"), "null"):
                return f"{name} IS {one_of(('', 'NOT '))}NULL"
            case (("JMSPriority" | "JMSTimestamp"), _):
                return f"{name} {one_of(('=', '<>', '<', '<=', '>', '>='))} {self._time_or_priority(name)}"
            case _, ("list" | "between"):
                words = ", ".join(f"'{one_of(_TEXT_HEADERS[name])}'" for _ in range(self._random.randint(1, 3)))
                return f"{name} {one_of(('', 'NOT '))}IN ({words})"
            case _, "pattern":
                return f"{name} {one_of(('', 'NOT '))}LIKE '{one_of((*_PATTERNS, 'ID:%', '%PERS%'))}'"
            case _, "null":
                return f"{name} IS {one_of(('', 'NOT '))}NULL"
            case _, "two":
                return f"{name} {one_of(('=', '<>'))} {one_of(TEXTS)}"
        return f"{name} {one_of(('=', '<>'))} '{one_of(_TEXT_HEADERS[name])}'"

    def _time_or_priority(self, name):
        return self._random.choice(_TIMES if name == "JMSTimestamp" else (0, 4, 5, 9, 10, "-1", "4.5"))

    def _number(self):
        return self._random.choice(WHOLES + FRACTIONS)

    def _literal(self):
        return self._random.choice(("0", "1", "5", "-1", "-0.5", "0.5", "0.25", "2.5", "-2.5", "5.0", "1e10", "100"))


def _value(value):
    whole = isinstance(value, int) and not isinstance(value, bool)
    return Value(Kind.LONG, value) if whole else Message.of(x=value).properties["x"]
