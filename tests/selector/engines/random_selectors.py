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


class RandomSelectors:
    def __init__(self, seed, *, calculations=False):
        self._random = Random(seed)
        self._calculations = calculations

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
        return Message(properties={name: _value(value) for name, value in kept.items()})

    def _condition(self):
        one_of = self._random.choice
        kinds = ["number", "number", "text", "list", "pattern", "between", "null", "truth", "two"]
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

    def _number(self):
        return self._random.choice(WHOLES + FRACTIONS)

    def _literal(self):
        return self._random.choice(("0", "1", "5", "-1", "-0.5", "0.5", "0.25", "2.5", "-2.5", "5.0", "1e10", "100"))


def _value(value):
    whole = isinstance(value, int) and not isinstance(value, bool)
    return Value(Kind.LONG, value) if whole else Message.of(x=value).properties["x"]
