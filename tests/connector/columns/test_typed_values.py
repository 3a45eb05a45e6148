import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyspark_jms.columns.typed_values import misfits
from pyspark_jms.jms.model import ValueType
from pyspark_jms.jms.rules import element_value_problem

LIMITS = {"byte": 2**7, "short": 2**15, "int": 2**31, "long": 2**63}
FITTING = {
    "boolean": ["true", "false", "TRUE", "False"],
    "byte": ["0", "-0", "+7", "007", "0" * 5000 + "7", "-128", "127"],
    "short": ["-32768", "32767", "+32767"],
    "int": ["-2147483648", "2147483647"],
    "long": ["-9223372036854775808", "9223372036854775807", "+9223372036854775807"],
    "float": ["0.0", "-0.0", "1.4E-45", "3.4028235E38", "NaN", "Infinity", "-Infinity", "1e400", "1", ".5", "1.", "2f"],
    "double": [
        "4.9E-324",
        "1.7976931348623157E308",
        "1.0E10",
        "+1",
        "0x1.8p1",
        "0x.8P-1d",
        "-NaN",
        "9" * 400,
    ],
    "string": ["", "x", "\0", "😀", "\n", "NaN"],
    "char": ["a", "\0", "\n", "世", "\uffff", "\ufeff", "é"],
    "bytes": ["", "AA==", "AAE=", "AAEC", "+/+/", "AAEC" * 1000 + "AA=="],
}
WRONG = {
    "boolean": ["", "yes", "1", "true ", "\ntrue", "true\n"],
    "byte": ["", "-", "+", "1.0", "0x7f", " 1", "1 ", "1\n", "\u0661", "--1", "+-1", "128", "-129", "9" * 5000],
    "short": ["32768", "-32769"],
    "int": ["2147483648", "-2147483649", "1_0"],
    "long": ["9223372036854775808", "-9223372036854775809", "18446744073709551616"],
    "float": ["", ".", "e5", "inf", "nan", "infinity", " 1.0", "1.0\n", "1,0", "1 0", "1e", "0x1", "1ff"],
    "double": ["", "1.0.0", "Infinityd", "\u0661"],
    "string": [],
    "char": ["", "ab", "😀", "e\u0301"],
    "bytes": ["A", "AA", "AAE", "AA=", "A===", "AA==\n", "AA\n==", "AA==AAEC", "AA-_", "é", " AAEC"],
}


def one_by_one(types, texts):
    return [
        kind is None or element_value_problem(kind, text) is not None for kind, text in zip(types, texts, strict=True)
    ]


def in_columns(types, texts):
    return misfits(pa.array(types, pa.string()), pa.array(texts, pa.string())).tolist()


def test_every_type_is_in_the_table():
    assert set(FITTING) == set(WRONG) == {kind.value for kind in ValueType}


@pytest.mark.parametrize("kind", list(FITTING))
def test_renderings_of_a_type(kind):
    texts = FITTING[kind] + WRONG[kind]
    expected = [False] * len(FITTING[kind]) + [True] * len(WRONG[kind])
    assert one_by_one([kind] * len(texts), texts) == expected
    assert in_columns([kind] * len(texts), texts) == expected
    for text, wrong in zip(texts, expected, strict=True):
        assert in_columns(["string", kind, "int"], ["x", text, "1"]) == [False, wrong, False]


@pytest.mark.parametrize("kind", list(LIMITS))
def test_the_range_of_a_whole_number(kind):
    limit = LIMITS[kind]
    texts = [str(-limit - 1), str(-limit), str(limit - 1), str(limit)]
    assert in_columns([kind] * 4, texts) == one_by_one([kind] * 4, texts) == [True, False, False, True]


def test_a_null_fits_every_type_and_an_unknown_type_nothing():
    known = [kind.value for kind in ValueType]
    assert in_columns(known, [None] * len(known)) == [False] * len(known)
    assert in_columns(["INT", "", "integer", None, None], ["1", "1", "1", None, "1"]) == [True] * 5


def test_a_null_of_an_unknown_type_has_no_type_all_the_same():
    assert in_columns(["integer"], [None]) == [True]


def test_nothing_to_look_at():
    assert in_columns([], []) == []


TYPES = st.sampled_from([kind.value for kind in ValueType] + ["no type"])
TEXTS = st.one_of(
    st.none(),
    st.text(max_size=5),
    st.text("+-0123456789.eExXpPfFdDNaInity_ \n=/A", max_size=12),
    st.integers().map(str),
    st.floats().map(repr),
    st.sampled_from([text for table in (FITTING, WRONG) for texts in table.values() for text in texts]),
)


# A null says nothing of its type to the rule of one value.
PAIRS = st.tuples(TYPES, TEXTS).filter(lambda pair: pair[0] != "no type" or pair[1] is not None)


@given(st.lists(PAIRS, max_size=12))
def test_columns_and_single_values_are_judged_alike(pairs):
    types, texts = [kind for kind, _ in pairs], [text for _, text in pairs]
    assert in_columns(types, texts) == one_by_one(types, texts)
