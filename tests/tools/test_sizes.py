import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sizes():
    spec = importlib.util.spec_from_file_location("sizes", ROOT / "tools" / "sizes.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def function(lines, name="f"):
    """A function of so many lines, ``def`` included."""
    return "\n".join([f"def {name}():", *["    pass"] * (lines - 1)])


def class_of(methods):
    properties = [f"    @property\n    def p{n}(self): ..." for n in range(methods // 2)]
    functions = [f"    def m{n}(self): ..." for n in range(methods - methods // 2)]
    return "\n".join(["class C:", *properties, *functions])


def test_at_the_limits_nothing_is_reported(sizes):
    assert not list(sizes.too_large("\n" * 400))
    assert not list(sizes.too_large(class_of(20)))
    assert not list(sizes.too_large("@decorator\n" + function(40)))


def test_what_exceeds_a_limit_is_named_with_its_size(sizes):
    assert list(sizes.too_large("\n" * 401)) == ["401 lines, the limit is 400"]
    assert list(sizes.too_large(class_of(21))) == ["line 1: class C has 21 methods, the limit is 20"]
    assert list(sizes.too_large("\n" + function(41))) == ["line 2: f has 41 lines, the limit is 40"]


def test_methods_and_inner_functions_are_measured_too(sizes):
    inner = "class C:\n" + "\n".join("    " + line for line in ("async " + function(41, "m")).splitlines())
    assert list(sizes.too_large(inner)) == ["line 2: m has 41 lines, the limit is 40"]


def test_files_of_both_packages_are_read(sizes, tmp_path):
    for package in sizes.PACKAGES:
        (tmp_path / package / "inner").mkdir(parents=True)
        (tmp_path / package / "inner" / "large.py").write_text("\n" * 500)
    assert sizes.problems(tmp_path) == [
        f"{package}/inner/large.py: 500 lines, the limit is 400" for package in sizes.PACKAGES
    ]
