import pytest

from pyspark_jms.options.table import OPTIONS


def test_no_two_options_differ_by_case_only():
    assert len({option.name.lower() for option in OPTIONS}) == len(OPTIONS)


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_every_default_is_a_value_and_every_row_says_what_it_means(option):
    if option.default is not None:
        option.parse(option.default)
    assert option.meaning
    assert option.scope in {"source", "sink", "both"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_what_cannot_be_parsed_is_a_value_error_that_says_what_would_do(option):
    if option.secret:
        assert option.parse("any \n text") == "any \n text"
        return
    with pytest.raises(ValueError, match=r"\w") as caught:
        option.parse("")
    assert "invalid literal" not in str(caught.value)


def test_a_password_is_a_secret_and_a_file_name_is_not():
    assert {option.name for option in OPTIONS if option.secret} == {"password", "sslKeyPassword"}
