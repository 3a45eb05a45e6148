from jms_selector.meaning.plan import (
    NOT_COMPUTABLE,
    Comparison,
    Constant,
    ConstantOutcome,
    Operand,
    expand_between,
    plan_condition,
    to_negation_normal_form,
)
from jms_selector.meaning.rules import Basis, Outcome
from jms_selector.syntax.dialects import ARTEMIS, CLASSIC, SPEC
from jms_selector.syntax.kinds import BITS, Kind
from jms_selector.syntax.parse import parse
from jms_selector.targets.text import render


def planned(text, dialect=SPEC, *, convert=False, **kinds):
    return plan_condition(parse(text).root, kinds, dialect, convert=convert)


def test_integers_of_every_width_share_a_plan():
    plans = {planned("a > 5", ARTEMIS, a=kind) for kind in BITS}
    assert plans == {Comparison(">", Basis(Kind.LONG), True, Operand("a", Kind.LONG), Constant(Kind.LONG, 5))}


def test_unlike_kinds_have_a_constant_outcome():
    assert planned("a > 5", a=Kind.STRING) == ConstantOutcome(Outcome.FALSE)
    assert planned("a > 5", a=Kind.NULL) == ConstantOutcome(Outcome.UNKNOWN)
    assert planned("a <> 5", ARTEMIS, a=Kind.STRING) == ConstantOutcome(Outcome.TRUE)
    assert planned("-a = 5", ARTEMIS, a=Kind.BYTE) == ConstantOutcome(Outcome.FAULT)
    assert planned("a LIKE 'x'", a=Kind.INT) == ConstantOutcome(Outcome.FALSE)
    assert planned("a NOT LIKE 'x'", ARTEMIS, a=Kind.INT) == ConstantOutcome(Outcome.TRUE)
    assert planned("a IN ('x')", CLASSIC, a=Kind.INT) == ConstantOutcome(Outcome.UNKNOWN)
    assert planned("a IS NULL", a=Kind.NULL) == ConstantOutcome(Outcome.TRUE)
    assert planned("a", a=Kind.DOUBLE) == ConstantOutcome(Outcome.FALSE)


def test_conditions_that_no_column_engine_computes():
    assert planned("a + 'x' = b", ARTEMIS, a=Kind.STRING, b=Kind.STRING) is NOT_COMPUTABLE
    assert planned("a * 2 = 4", ARTEMIS, convert=True, a=Kind.STRING) is NOT_COMPUTABLE
    assert planned("(a = 1) = TRUE", a=Kind.INT) is NOT_COMPUTABLE
    assert (
        plan_condition(parse("REGEX('x', a)", dialect="classic").root, {"a": Kind.INT}, CLASSIC, convert=False)
        is NOT_COMPUTABLE
    )


def test_rewritten_trees():
    assert render(expand_between(parse("a BETWEEN 1 AND 2 AND NOT b").root)) == "(a >= 1 AND a <= 2) AND NOT b"
    assert render(expand_between(parse("a NOT BETWEEN 1 AND 2").root)) == "a < 1 OR a > 2"
    assert (
        render(to_negation_normal_form(parse("NOT (a = 1 AND NOT (b OR c = 2))").root)) == "NOT (a = 1) OR (b OR c = 2)"
    )
