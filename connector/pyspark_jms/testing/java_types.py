"""Finds the Java class of a value. py4j converts a Byte, a Short and an Integer all to an int."""

from typing import Any

__all__ = ["JavaTypes", "strings"]

_JMS_NAMES = {"Integer": "int", "Character": "char", "byte[]": "bytes"}


class JavaTypes:
    """Calls a getter and stores the result in a Java list, where its class can be read."""

    def __init__(self, jvm: Any) -> None:
        self._jvm = jvm
        self._lookup = jvm.java.lang.invoke.MethodHandles.publicLookup()
        self._method_type = jvm.java.lang.invoke.MethodType.methodType
        self._object = self.named("java.lang.Object")
        get = self._virtual("java.util.ArrayList", "get", self._object, jvm.java.lang.Integer.TYPE)
        get_class = self._virtual("java.lang.Object", "getClass", self.named("java.lang.Class"))
        self._class_at = jvm.java.lang.invoke.MethodHandles.filterReturnValue(get, get_class)

    def named(self, name: str) -> Any:
        return self._jvm.java.lang.Class.forName(name)

    def typed(self, target: Any, owner: str, getter: str, *name: str) -> tuple[str, Any] | None:
        """``target.getter(name)`` as (JMS type name, value); None stays None."""
        box = self._jvm.java.util.ArrayList()
        add = self._virtual("java.util.ArrayList", "add", self._jvm.java.lang.Boolean.TYPE, self._object)
        get = self._virtual(owner, getter, self._object, *[self.named("java.lang.String")] * len(name))
        into_box = self._jvm.java.lang.invoke.MethodHandles.filterReturnValue(get, add.bindTo(box))
        into_box.invokeWithArguments(self._list(target, *name))
        value = box.get(0)
        if value is None:
            return None
        name_of_class = str(self._class_at.invokeWithArguments(self._list(box, 0)).getSimpleName())
        return _JMS_NAMES.get(name_of_class, name_of_class.lower()), value

    def _virtual(self, owner: str, method: str, result: Any, *parameters: Any) -> Any:
        signature = self._method_type(result, *parameters)
        return self._lookup.findVirtual(self.named(owner), method, signature)

    def _list(self, *values: Any) -> Any:
        arguments = self._jvm.java.util.ArrayList()
        for value in values:
            arguments.add(value)
        return arguments


def strings(enumeration: Any) -> list[str]:
    """The elements of a ``java.util.Enumeration<String>``."""
    found = []
    while enumeration.hasMoreElements():
        found.append(str(enumeration.nextElement()))
    return found
