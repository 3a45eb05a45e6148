"""The parser of the pages' blocks, and the comparison of printed output."""

import pytest
from page_blocks import matches, parse

PAGE = """\
# A page

<!-- setup: x = 1 -->

```python
print(x)
```

<!-- output -->

```
1
```

<!-- check
assert x == 1
assert x < 2
-->

- a list

    ```sh
    ls
    ```

<!-- not run: needs Docker -->

```sh
docker ps
```

```json
{}
```
"""


def test_blocks_have_their_comments():
    first, second, third = parse("a.md", PAGE)
    assert (first.language, first.code, first.line, first.output) == ("python", "print(x)\n", 6, "1\n")
    assert first.setup == ["x = 1"]
    assert first.checks == ["assert x == 1\nassert x < 2"]
    assert (second.language, second.code, second.not_run) == ("sh", "ls\n", None)
    assert (third.not_run, str(third)) == ("needs Docker", "a.md:29")


@pytest.mark.parametrize(
    "page",
    [
        "<!-- setup: x = 1 -->\n\n```json\n{}\n```\n",
        "<!-- not run: why -->\n",
        "<!-- check: x -->\n",
        "```sh\nls\n```\n<!-- output -->\n",
    ],
)
def test_a_comment_without_its_block_is_an_error(page):
    with pytest.raises(ValueError, match=r"a\.md"):
        parse("a.md", page)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("1\n2\n", "1\n2", True),
        ("1\n2\n", "1\n3\n", False),
        ("at … s\n", "at 3.5 s  \n", True),
        ("at … s\n", "at 3.5\n s\n", False),
        ("a\n…\nb\n", "a\n1\n2\nb\n", True),
        ("a\n…\nb\n", "a\n1\n2\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_output_is_compared_line_by_line(expected, printed, same):
    assert matches(expected, printed) is same
