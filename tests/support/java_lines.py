"""Java of the documentation, compiled and run in the broker's virtual machine by the machine's own compiler."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from pyspark_jms.tools.testing.java import find_java, spark_jars

HARNESS = """
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.jms.*;
import java.util.*;
import java.util.function.Function;

public class Documented {
%s
    /** Name, class and value of each element: bytes in base64, floating-point numbers by their bits. */
    public static String reported(TextMessage message) throws Exception {
        StringBuilder reported = new StringBuilder();
        for (Map.Entry<Object, Object> entry : values(message).entrySet()) {
            Object value = entry.getValue();
            reported.append(base64(entry.getKey())).append(' ')
                .append(entry.getKey().getClass().getSimpleName()).append(' ')
                .append(value == null ? "null" : value.getClass().getSimpleName()).append(' ')
                .append(value instanceof byte[] ? Base64.getEncoder().encodeToString((byte[]) value)
                    : value instanceof Float ? "" + Float.floatToRawIntBits((Float) value)
                    : value instanceof Double ? "" + Double.doubleToRawLongBits((Double) value)
                    : base64(value)).append('\\n');
        }
        return reported.toString();
    }

    static String base64(Object value) throws Exception {
        return Base64.getEncoder().encodeToString(String.valueOf(value).getBytes("UTF-16BE"));
    }

    /** What a Python client cannot hand over: a text that is not Unicode. */
    public static void loneSurrogate(TextMessage message) throws Exception {
        message.setText("a\\ud800b");
    }
}
"""
"""A class around the lines of the documentation, which stand for ``%s``: what a test reads of their values."""

_DOCS = Path(__file__).parents[2] / "docs"


def fenced(page, language):
    """The code blocks of a page, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", (_DOCS / page).read_text(), re.MULTILINE | re.DOTALL)


def jackson():
    """Spark brings it."""
    names = ("jackson-annotations-*.jar", "jackson-core-[0-9]*.jar", "jackson-databind-*.jar")
    return [str(jar) for name in names for jar in spark_jars().glob(name)]


def compiled(broker, name, source, folder):
    """The class ``name``, which sees Jackson and what the broker's machine sees. Without a compiler: skipped."""
    jvm = broker.jvm
    if "jdk.compiler@" not in _run_java("--list-modules").stdout:
        pytest.skip("this machine's Java has no compiler (a JDK has one)")
    file = folder / f"{name}.java"
    file.write_text(source)
    classpath = os.pathsep.join([*jackson(), str(jvm.System.getProperty("java.class.path"))])
    javac = ["--module", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none"]
    reported = _run_java(*javac, "-classpath", classpath, "-d", str(folder), str(file))
    assert reported.returncode == 0, reported.stdout + reported.stderr
    urls = [jvm.java.io.File(path).toURI().toURL() for path in (*jackson(), f"{folder}/")]
    parent = jvm.ClassLoader.getSystemClassLoader()
    return jvm.java.net.URLClassLoader(_array(broker.gateway, jvm.java.net.URL, urls), parent).loadClass(name)


def _run_java(*arguments):
    return subprocess.run([find_java(), *arguments], capture_output=True, text=True, timeout=120, check=False)


def call(broker, java_class, method, argument):
    """A static method of one parameter."""
    (found,) = [m for m in java_class.getMethods() if m.getName() == method]
    return found.invoke(None, _array(broker.gateway, broker.jvm.java.lang.Object, [argument]))


def _array(gateway, of, values):
    array = gateway.new_array(of, len(values))
    for index, value in enumerate(values):
        array[index] = value
    return array
