from jms_selector.meaning.plan import (
    ANYTHING,
    Comparison,
    Constant,
    Operand,
    Verdict,
    comparisons,
    negation_normal,
    specialise,
)
from jms_selector.meaning.rules import Basis, Outcome
from jms_selector.syntax.dialects import ARTEMIS, CLASSIC, SPEC
from jms_selector.syntax.kinds import BITS, Kind
from jms_selector.syntax.parse import parse
from jms_selector.targets.text import render


def planned(text, dialect=SPEC, *, convert=False, **kinds):
    return specialise(parse(text).root, kinds, dialect, convert=convert)


def test_integers_of_every_width_share_a_plan():
    plans = {planned("a > 5", ARTEMIS, a=kind) for kind in BITS}
    assert plans == {Comparison(">", Basis(Kind.LONG), True, Operand("a", Kind.LONG), Constant(Kind.LONG, 5))}


def test_unlike_kinds_have_a_verdict():
    assert planned("a > 5", a=Kind.STRING) == Verdict(Outcome.FALSE)
    assert planned("a > 5", a=Kind.NULL) == Verdict(Outcome.UNKNOWN)
    assert planned("a <> 5", ARTEMIS, a=Kind.STRING) == Verdict(Outcome.TRUE)
    assert planned("-a = 5", ARTEMIS, a=Kind.BYTE) == Verdict(Outcome.FAULT)
    assert planned("a LIKE 'x'", a=Kind.INT) == Verdict(Outcome.FALSE)
    assert planned("a NOT LIKE 'x'", ARTEMIS, a=Kind.INT) == Verdict(Outcome.TRUE)
    assert planned("a IN ('x')", CLASSIC, a=Kind.INT) == Verdict(Outcome.UNKNOWN)
    assert planned("a IS NULL", a=Kind.NULL) == Verdict(Outcome.TRUE)
    assert planned("a", a=Kind.DOUBLE) == Verdict(Outcome.FALSE)


def test_what_no_column_computes():
    assert planned("a + 'x' = b", ARTEMIS, a=Kind.STRING, b=Kind.STRING) is ANYTHING
    assert planned("a * 2 = 4", ARTEMIS, convert=True, a=Kind.STRING) is ANYTHING
    assert planned("(a = 1) = TRUE", a=Kind.INT) is ANYTHING
    assert (
        specialise(parse("REGEX('x', a)", dialect="classic").root, {"a": Kind.INT}, CLASSIC, convert=False) is ANYTHING
    )


def test_shapes():
    assert render(comparisons(parse("a BETWEEN 1 AND 2 AND NOT b").root)) == "(a >= 1 AND a <= 2) AND NOT b"
    assert render(comparisons(parse("a NOT BETWEEN 1 AND 2").root)) == "a < 1 OR a > 2"
    assert render(negation_normal(parse("NOT (a = 1 AND NOT (b OR c = 2))").root)) == "NOT (a = 1) OR (b OR c = 2)"
