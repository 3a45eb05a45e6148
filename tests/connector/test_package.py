"""Spark imports the package in every worker and every look-up: it must be cheap and must not fail."""

import importlib.metadata
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyspark_jms
from pyspark_jms import errors

DOCS = Path(__file__).parents[2] / "docs"
PUBLIC = {
    "pyspark_jms", "pyspark_jms.functions", "pyspark_jms.monitoring", "pyspark_jms.testing", "pyspark_jms.errors",
    "jms_selector", "jms_selector.arrow",
}  # fmt: skip

HEAVY = ("numpy", "pyarrow", "lark", "stomp", "pyspark", "ssl")


def in_a_fresh_interpreter(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.split()


def test_importing_pulls_nothing_in():
    code = (
        f"import sys; before = set(sys.modules); import pyspark_jms; print(*(set(sys.modules) - before) & {{*{HEAVY}}})"
    )
    assert in_a_fresh_interpreter(code) == []


def test_sparks_look_up_finds_the_source():
    # pyspark/sql/worker/lookup_data_sources.py: iter_modules, the prefix, hasattr DefaultSource
    code = (
        "import importlib, pkgutil;"
        "names = [m.name for m in pkgutil.iter_modules() if m.name.startswith('pyspark_')];"
        "print(*(n for n in names if hasattr(importlib.import_module(n), 'DefaultSource')))"
    )
    assert in_a_fresh_interpreter(code) == ["pyspark_jms"]


def test_default_source_is_format_jms():
    assert pyspark_jms.DefaultSource.name() == "jms"


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="module 'pyspark_jms' has no attribute 'Nothing'"):
        _ = pyspark_jms.Nothing


def test_version_is_the_distributions():
    assert importlib.metadata.version("pyspark-jms") == pyspark_jms.__version__


def test_what_is_public():
    assert sorted(pyspark_jms.__all__) == ["DefaultSource", "__version__"]


@pytest.mark.parametrize("module", sorted(PUBLIC))
def test_a_public_module_says_what_is_public(module):
    found = importlib.import_module(module)
    assert all(hasattr(found, name) for name in found.__all__)
    assert len(set(found.__all__)) == len(found.__all__)


def test_every_error_is_public():
    classes = {
        name for name, found in vars(errors).items() if inspect.isclass(found) and found.__module__ == errors.__name__
    }
    assert set(errors.__all__) == classes


def test_the_pages_promise_the_public_modules_and_no_other():
    promise = next(line for line in (DOCS / "upgrading.md").read_text().splitlines() if line.startswith("| Python |"))
    assert set(re.findall(r"`((?:pyspark_jms|jms_selector)[a-z_.]*)`", promise)) == PUBLIC
    headings = re.findall(r"^### `(\S+)`$", (DOCS / "embedded-broker.md").read_text(), re.MULTILINE)
    assert (set(headings), len(headings)) == (PUBLIC, len(PUBLIC))


def test_the_pages_import_public_modules_only():
    """In the programs of the pages. What a page of the house shows of its inside is no program of a user."""
    imported = re.compile(r"^\s*(?:from|import) ((?:pyspark_jms|jms_selector)[a-z_.]*)(?: import (.*))?$", re.MULTILINE)
    for page in [DOCS.parent / "README.md", *DOCS.rglob("*.md")]:
        if "notebook" not in page.parts:
            for module, names in imported.findall(page.read_text()):
                chosen = {f"{module}.{name.strip()}" for name in names.split(",")} if names else set()
                assert module in PUBLIC, f"{page.name} imports {module}"
                assert not {name for name in chosen if name in _modules()} - PUBLIC, f"{page.name} imports {chosen}"


def _modules():
    return {f"{root}.{file.stem}" for root in ("pyspark_jms", "jms_selector") for file in _folder(root).glob("*.py")}


def _folder(package):
    return Path(importlib.import_module(package).__file__).parent
