from pathlib import Path

from tools import sizes

ROOT = Path(__file__).parents[2]


def function(lines, name="f"):
    """A function of so many lines, ``def`` included."""
    return "\n".join([f"def {name}():", *["    pass"] * (lines - 1)])


def test_at_the_limits_nothing_is_reported():
    assert not list(sizes.too_large("\n" * 600))
    assert not list(sizes.too_large("@decorator\n" + function(40)))


def test_what_exceeds_a_limit_is_named_with_its_size():
    assert list(sizes.too_large("\n" * 601)) == ["601 lines, the limit is 600"]
    assert list(sizes.too_large("\n" + function(41))) == ["line 2: f has 41 lines, the limit is 40"]


def test_methods_and_inner_functions_are_measured_too():
    inner = "class C:\n" + "\n".join("    " + line for line in ("async " + function(41, "m")).splitlines())
    assert list(sizes.too_large(inner)) == ["line 2: m has 41 lines, the limit is 40"]


def test_files_of_both_packages_are_read(tmp_path):
    for package in sizes.PACKAGES:
        (tmp_path / package / "inner").mkdir(parents=True)
        (tmp_path / package / "inner" / "large.py").write_text("\n" * 700)
    assert sizes.problems(tmp_path) == [
        f"{package}/inner/large.py: 700 lines, the limit is 600" for package in sizes.PACKAGES
    ]
