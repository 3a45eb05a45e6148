"""Errors without the frames of this connector, which Spark prints twice, before the sentence that counts."""

import functools
import logging
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

from pyspark_jms.errors import IllegalStateError, JMSError

__all__ = ["short_traceback", "short_traceback_of_rows"]

_log = logging.getLogger("pyspark_jms.spark")
_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def short_traceback(call: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """For a method that Spark calls."""

    @functools.wraps(call)
    def caller(*arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        try:
            return call(*arguments, **named)
        except JMSError as error:
            raise _shortened(error) from None

    return caller


def short_traceback_of_rows(rows: Iterator[_Result]) -> Iterator[_Result]:
    """For the iterator that such a method returns."""
    try:
        yield from rows
    except JMSError as error:
        raise _shortened(error) from None


def _shortened(error: JMSError) -> JMSError:
    """The error of a bug keeps its frames. Those of others are in the log, at level DEBUG."""
    if isinstance(error, IllegalStateError):
        return error
    _log.debug("= the traceback of %s", error.code, exc_info=error)
    return error.with_traceback(None)
