"""Every Python and shell block of README.md and docs/ runs, on a real broker and a real Spark."""

import re

import page_blocks
import pytest
from page_runner import PageRunner

from pyspark_jms.testing import User

BLOCKS = {page: page_blocks.blocks(page) for page in page_blocks.pages()}
IN_MAKE_TEST = {"README.md"}
"""The other pages are left to `make test-deep`."""

RECIPE = re.compile(r"^<!-- (?:file|printed by): .+ -->$", re.MULTILINE)
"""Before a block of a recipe whose program tests/recipes runs, and before what it prints."""

MOST_NOT_RUN = 0.10
PASSWORD = "artemis"
"""Of every user of the broker, and in JMS_PASSWORD."""


def _parameters():
    for page, blocks in BLOCKS.items():
        if any(block.not_run is None for block in blocks):
            yield pytest.param(page, marks=() if page in IN_MAKE_TEST else pytest.mark.deep)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [*_parameters()])
def test_every_block_of_the_page_runs(page, spark, fresh_broker, tmp_path):
    page_run = PageRunner(spark, fresh_broker(users=[User("spark", PASSWORD)]), tmp_path)
    try:
        page_run.run(BLOCKS[page])
    finally:
        page_run.stop_queries()


def test_no_code_hides_behind_another_name_of_its_language():
    """Only recipes have such blocks: tests/recipes runs their programs."""
    hidden = re.compile(r"^ *```(?:py|python3|bash|shell|zsh)$", re.MULTILINE)
    texts = {page: (page_blocks.ROOT / page).read_text(encoding="utf-8") for page in BLOCKS}
    assert [page for page, text in texts.items() if hidden.search(text) and not RECIPE.search(text)] == []


def test_at_most_a_tenth_of_the_blocks_is_not_run_and_each_of_these_has_a_reason(report):
    blocks = [block for of_page in BLOCKS.values() for block in of_page]
    not_run = [block for block in blocks if block.not_run is not None]
    recipes = sum(len(RECIPE.findall((page_blocks.ROOT / page).read_text(encoding="utf-8"))) for page in BLOCKS)
    report(f"blocks of README.md and docs/: {len(blocks)}, not run: {len(not_run)}; run by tests/recipes: {recipes}")
    assert all(block.not_run for block in not_run)
    all_blocks = len(blocks) + recipes
    assert len(not_run) <= MOST_NOT_RUN * all_blocks, [f"{block}: {block.not_run}" for block in not_run]


def test_each_test_that_the_threat_model_names_exists():
    """Each line of a table names one, or says that there is none."""
    page = (page_blocks.ROOT / "docs/security.md").read_text(encoding="utf-8").partition("## Threat model")[2]
    lines = [line for line in page.splitlines() if line.startswith("| ") and not line.endswith("| test |")]
    assert lines
    named = {line: re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", line.rpartition(" | ")[2]) for line in lines}
    assert [line for line, tests in named.items() if not tests and " | none: " not in line] == []
    missing = [
        f"{path}::{test}"
        for tests in named.values()
        for path, test in tests
        if not re.search(rf"^def {test}\(", (page_blocks.ROOT / path).read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert missing == []
