import pytest

from jms_selector.errors import (
    EvaluationError,
    InvalidSelectorError,
    SelectorError,
    SelectorTooLargeError,
    UnsupportedSelectorError,
)


def caret_of(error):
    *_, line, caret = error.context.split("\n")
    return line[len(caret) - 1 :], caret


def test_the_caret_is_under_the_position():
    error = InvalidSelectorError("a == 1", 3, "= cannot stand here", ("a number", "("), "One = is enough.")
    assert caret_of(error)[0] == "= 1"
    assert str(error) == (
        "[JMS_INVALID_SELECTOR] = cannot stand here (at character 4)\n"
        "  a == 1\n"
        "     ^\n"
        "Expected a number or (.\n"
        "One = is enough."
    )


@pytest.mark.parametrize("position", [0, 59, 60, 61, 500, 1000])
def test_a_long_text_is_cut_around_the_position(position):
    text = "x" * position + "!" + "y" * (1000 - position)
    error = InvalidSelectorError(text, position, "found")
    assert caret_of(error)[0].startswith("!")
    assert max(map(len, error.context.split("\n"))) < 130


def test_line_ends_and_tabs_do_not_move_the_caret():
    assert caret_of(InvalidSelectorError("a =\n\t? 1", 5, "found"))[0] == "? 1"


def test_every_error_has_its_code_and_one_root():
    codes = {
        SelectorTooLargeError("x", 0, "f"): "JMS_SELECTOR_TOO_LARGE",
        UnsupportedSelectorError("no form"): "JMS_UNSUPPORTED_SELECTOR",
        EvaluationError("thrown"): "JMS_SELECTOR_EVALUATION",
    }
    for error, code in codes.items():
        assert isinstance(error, SelectorError)
        assert str(error).startswith(f"[{code}]")
