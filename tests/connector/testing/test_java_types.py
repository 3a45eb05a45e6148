import pytest

from pyspark_jms.testing.java import JavaMachine
from pyspark_jms.testing.java_types import JavaTypes, strings


@pytest.fixture(scope="module")
def jvm(tmp_path_factory):
    machine = JavaMachine([], log=tmp_path_factory.mktemp("java") / "java.log").connect()
    yield machine.jvm
    machine.kill()


@pytest.mark.parametrize(
    ("value", "typed"),
    [
        (True, ("boolean", True)),
        (1, ("int", 1)),
        (2**40, ("long", 2**40)),
        (0.5, ("double", 0.5)),
        ("x", ("string", "x")),
        (b"\0\xff", ("bytes", b"\0\xff")),
        (None, None),
    ],
)
def test_class_and_value(jvm, value, typed):
    reference = jvm.java.util.concurrent.atomic.AtomicReference()
    reference.set(value)
    assert JavaTypes(jvm).typed(reference, "java.util.concurrent.atomic.AtomicReference", "get") == typed


def test_strings(jvm):
    tokens = jvm.java.util.StringTokenizer("a b c")
    names = jvm.java.util.Collections.list(tokens)
    assert strings(jvm.java.util.Collections.enumeration(names)) == ["a", "b", "c"]
    assert strings(jvm.java.util.Collections.emptyEnumeration()) == []
