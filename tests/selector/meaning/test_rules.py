import pytest

from jms_selector.meaning.rules import UNDECIDED, Basis, Outcome, arithmetic, comparison, negation
from jms_selector.syntax.dialects import ARTEMIS, CLASSIC, IBM, SPEC
from jms_selector.syntax.kinds import Kind

TRUE, FALSE, UNKNOWN, FAULT = Outcome
NUMBERS = (Kind.BYTE, Kind.SHORT, Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE)


def test_conversion_parses_the_text_as_the_type_of_the_other_operand():
    assert comparison(ARTEMIS, ">", Kind.STRING, Kind.INT, convert=True) == Basis(Kind.INT, "left")
    assert comparison(ARTEMIS, "=", Kind.DOUBLE, Kind.STRING, convert=True) == Basis(Kind.DOUBLE, "right")
    assert comparison(ARTEMIS, "=", Kind.STRING, Kind.STRING, convert=True) == Basis(Kind.STRING)
    assert comparison(ARTEMIS, "=", Kind.BOOLEAN, Kind.STRING, convert=True) == Basis(Kind.BOOLEAN, "right")
    assert comparison(CLASSIC, "=", Kind.BOOLEAN, Kind.STRING, convert=True) is FAULT
    assert comparison(CLASSIC, "=", Kind.STRING, Kind.BOOLEAN, convert=True) == Basis(Kind.BOOLEAN, "left")


def test_promotion_is_symmetric_in_the_specification():
    for left in NUMBERS:
        for right in NUMBERS:
            assert comparison(SPEC, "=", left, right) == comparison(SPEC, "=", right, left)


def test_an_outcome_and_its_negation():
    assert [~outcome for outcome in Outcome] == [FALSE, TRUE, UNKNOWN, FAULT]


ARITHMETIC = [  # operator, left, right, spec, artemis
    ("+", Kind.BYTE, Kind.BYTE, Kind.INT, Kind.INT),
    ("+", Kind.FLOAT, Kind.FLOAT, Kind.FLOAT, Kind.DOUBLE),
    ("/", Kind.INT, Kind.INT, Kind.INT, Kind.DOUBLE),
    ("*", Kind.INT, Kind.LONG, Kind.LONG, Kind.LONG),
    ("+", Kind.STRING, Kind.INT, Kind.FAULT, Kind.STRING),
    ("+", Kind.INT, Kind.STRING, Kind.FAULT, Kind.FAULT),
    ("-", Kind.NULL, Kind.STRING, Kind.NULL, Kind.NULL),
    ("-", Kind.STRING, Kind.NULL, Kind.NULL, Kind.NULL),
]


@pytest.mark.parametrize(("operator", "left", "right", "spec", "artemis"), ARITHMETIC)
def test_arithmetic(operator, left, right, spec, artemis):
    assert arithmetic(SPEC, operator, left, right) is spec
    assert arithmetic(ARTEMIS, operator, left, right) is artemis


def test_the_kind_of_converted_arithmetic_depends_on_the_text_except_on_classic():
    assert arithmetic(ARTEMIS, "*", Kind.STRING, Kind.INT, convert=True) is UNDECIDED
    assert arithmetic(CLASSIC, "*", Kind.STRING, Kind.INT, convert=True) is Kind.FAULT
    assert arithmetic(ARTEMIS, "*", Kind.BOOLEAN, Kind.STRING, convert=True) is Kind.FAULT


@pytest.mark.parametrize("operator", ["=", "<>", "<", ">="])
@pytest.mark.parametrize("convert", [False, True])
def test_a_double_left_of_a_float_throws_on_classic(operator, convert):
    assert comparison(CLASSIC, operator, Kind.DOUBLE, Kind.FLOAT, convert=convert) is FAULT
    assert comparison(CLASSIC, operator, Kind.FLOAT, Kind.DOUBLE, convert=convert) == Basis(Kind.DOUBLE)
    assert comparison(ARTEMIS, operator, Kind.DOUBLE, Kind.FLOAT, convert=convert) == Basis(Kind.DOUBLE)


def test_nulls_and_faults_make_an_ibm_selector_false():
    assert arithmetic(IBM, "+", Kind.NULL, Kind.INT) is Kind.FAULT
    assert comparison(IBM, "=", Kind.STRING, Kind.INT) is FAULT
    assert comparison(IBM, "=", Kind.NULL, Kind.INT) is UNKNOWN


@pytest.mark.parametrize(
    ("kind", "spec", "artemis"),
    [
        (Kind.BYTE, Kind.INT, Kind.FAULT),
        (Kind.INT, Kind.INT, Kind.INT),
        (Kind.FLOAT, Kind.FLOAT, Kind.FLOAT),
        (Kind.STRING, Kind.FAULT, Kind.NULL),
        (Kind.NULL, Kind.NULL, Kind.NULL),
        (Kind.BIG, Kind.FAULT, Kind.BIG),
    ],
)
def test_negation(kind, spec, artemis):
    assert negation(SPEC, kind) is spec
    assert negation(ARTEMIS, kind) is artemis
