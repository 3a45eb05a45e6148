"""``jms-selector``: shows how a selector is split between a broker and Spark."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from io import TextIOWrapper

from jms_selector.errors import SelectorError
from jms_selector.portability import ENGINES, portable
from jms_selector.pushdown.push import push
from jms_selector.syntax.dialects import DIALECTS
from jms_selector.syntax.kinds import NO_HEADERS, Schema
from jms_selector.syntax.parse import parse
from jms_selector.syntax.tree import Node, Selector
from jms_selector.targets.text import render

__all__ = ["exit_code", "main"]

_BROKERS = tuple(name for name, dialect in DIALECTS.items() if dialect.activemq)


def main(arguments: Sequence[str] | None = None, schema: Schema = NO_HEADERS) -> int:
    """Run a command and return the exit code. ``schema``: the headers that selectors may name."""

    def run() -> int:
        options = _parser().parse_args(arguments)
        return int(options.run(options, schema))

    return exit_code(run, SelectorError)


def exit_code(run: Callable[[], int], refusal: type[Exception]) -> int:
    """Run a command and return its exit code. The error ``refusal`` is printed, and the code is 1. So is that of an
    output that is full; the code of an output that is closed is 141.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a text may have characters that the terminal has not
    try:
        status = run()
        if sys.stdout is not None:
            sys.stdout.flush()
    except refusal as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        if sys.stdout is not None:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes it once more
        if isinstance(error, BrokenPipeError):
            return 141
        print(error, file=sys.stderr)
        return 1
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jms-selector", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    explain = commands.add_parser(
        "explain", help="show the tree of a selector, its pushdown and its residual, with reasons"
    )
    explain.add_argument("selector", help="the selector, in quotes")
    explain.add_argument("--dialect", choices=tuple(DIALECTS), default="artemis", help="default: artemis")
    explain.add_argument("--strict", action="store_true", help="allow only what the specification allows")
    explain.add_argument("--convert", action="store_true", help="compare strings that hold numbers as numbers")
    explain.add_argument(
        "--portable", action="store_true", help="show what engines decide otherwise, and a portable text"
    )
    explain.set_defaults(run=_explain)
    return parser


def _explain(options: argparse.Namespace, schema: Schema) -> int:
    selector = parse(options.selector, strict=options.strict, schema=schema)
    print("Tree")
    print("\n".join(f"  {line}" for line in tree_lines(selector)))
    if options.portable:
        print("\n".join(_portable_lines(selector)))
        return 0
    if options.dialect not in _BROKERS:
        print(f"\nReads in the {options.dialect} dialect\n  {render(selector, options.dialect) or '(all messages)'}")
        return 0
    pushed = push(selector, options.dialect, convert=options.convert, schema=schema)
    print(f"\nPushed to {options.dialect}\n  {pushed.text if pushed.text is not None else '(nothing)'}")
    print(f"\nStays in Spark\n  {render(pushed.residual) if pushed.residual else '(nothing)'}")
    if pushed.warnings:
        print("\nBecause")
        print("\n".join(f"  {warning}" for warning in pushed.warnings))
    return 0


def _portable_lines(selector: Selector) -> Iterator[str]:
    found = portable(selector)
    yield f"\nPortable text\n  {found.text or '(all messages)'}"
    for title, differences in (("In the given text", found.differences), ("In the portable text", found.remaining)):
        yield f"\n{title}, engines decide otherwise"
        for each in differences:
            engines = ", ".join(f"{engine} {ENGINES[engine]}" for engine in each.engines)
            yield f"  {each.what}: {engines}"
        if not differences:
            yield "  (nothing)"


def tree_lines(selector: Selector) -> Iterator[str]:
    """One line for each AND, OR, NOT and condition, with operands indented."""
    if selector.root is None:
        yield "(all messages)"
        return
    stack: list[tuple[Node, int]] = [(selector.root, 0)]
    while stack:
        node, depth = stack.pop()
        inner = node.children if type(node).__name__ in {"And", "Or", "Not"} else ()
        yield "  " * depth + (type(node).__name__.upper() if inner else render(node))
        stack.extend((child, depth + 1) for child in reversed(inner))


if __name__ == "__main__":
    sys.exit(main())
