"""Text -> lark's tree, with the grammar of the dialect (``grammar*.lark``). Imports lark."""

from functools import lru_cache
from importlib import resources
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from jms_selector.syntax import literals
from jms_selector.syntax.diagnose import diagnose
from jms_selector.syntax.reading import Reading

__all__ = ["lark_tree"]


def lark_tree(reading: Reading) -> Tree[Token] | Token:
    """Parse a text. A syntax error raises an ``InvalidSelectorError`` with a hint."""
    body = reading.body
    try:
        return _lark(reading.dialect.activemq, reading.hyphens).parse(body)
    except UnexpectedInput as error:
        found = diagnose(body, error, strict=reading.strict)
        reading.refuse(found.position, found.found, found.expected, found.hint)


@lru_cache
def _lark(activemq: bool, hyphens: bool) -> Lark:  # noqa: FBT001 - positional, so that equal calls share a cache entry
    folder = resources.files("jms_selector.syntax")
    files = ("grammar.lark", "grammar_activemq.lark" if activemq else "grammar_spec.lark")

    def terminal(token: Token) -> Token:
        name = literals.reserved_word(str(token), activemq=activemq)
        return type(token).new_borrow_pos(name, token.value, token) if name else token

    def hyphenated(definition: Any) -> None:
        if definition.name == "NAME":
            definition.pattern.value = r"[A-Za-z_$][A-Za-z0-9_$-]*"

    return Lark(
        "\n".join((folder / file).read_text("utf-8") for file in files),
        parser="lalr",
        lexer="basic",
        maybe_placeholders=True,
        lexer_callbacks={"NAME": terminal},
        edit_terminals=hyphenated if hyphens else None,
    )
