"""Spark imports the package in every worker and every look-up: it must be cheap and must not fail."""

import importlib.metadata
import subprocess
import sys

import pytest

import pyspark_jms

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
