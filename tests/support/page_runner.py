"""Runs the blocks of a documentation page in order, as a reader does: one Python, one folder, one broker.

Before a block runs, two kinds of text in it are replaced: ``stomp://localhost:61613``, ``amqp://broker:5672`` and other
ports of these hosts by the address of the test's broker; folders below ``/data/``, ``/tmp/`` and ``out/`` by folders
below the test's, because the Spark of the tests has another working directory.

A page's Python starts with the names ``spark`` and ``access`` (URL, user, password). Setup and checks also have
``broker``, ``java`` (a JMS client), ``Typed``, ``folder`` and ``wait_until``. A shell has the password in JMS_PASSWORD.
"""

import contextlib
import io
import os
import re
import sys
from pathlib import Path

import own_process
from page_blocks import ROOT, matches
from waiting import wait_until

from pyspark_jms.testing import JmsClient, Typed

_ADDRESS = re.compile(r"\b(?P<protocol>stomp|amqp)://(?:localhost|broker|127\.0\.0\.1):\d+")
_FOLDER = re.compile(r"(?<![\w./])(?:/data/|/tmp/|(?=out/))")
_SECONDS = 240
"""For a shell block, and for the work of a query."""


class PageRunner:
    def __init__(self, spark, broker, folder):
        self.broker, self.folder, self.spark = broker, folder, spark
        access = {"brokerUrl": broker.url, "user": broker.user, "password": broker.password}
        self.names = {"__name__": "__main__", "spark": spark, "access": access}
        self.ours = {"broker": broker, "folder": folder, "wait_until": self._wait_until, "Typed": Typed}
        self.queries = {}
        (folder / "jobs").symlink_to(ROOT / "jobs")

    def run(self, blocks):
        code = [code for block in blocks for code in (*block.setup, *block.checks)]
        with contextlib.ExitStack() as client:
            if any("java." in text for text in code):  # it lives in the broker's JVM, which another page restarts
                self.ours["java"] = client.enter_context(JmsClient(self.broker))
            for block in blocks:
                if block.not_run is None:
                    self._run(block)
            self._queries_did_their_work()

    def _run(self, block):
        for code in block.setup:
            self._python(code, f"{block} (setup)", more=self.ours)
        printed = self._python(block.code, block.page, block.line) if block.language == "python" else self._shell(block)
        self._remember_queries()
        if block.output is not None:
            assert self._is_expected(self._replaced(block.output), printed), f"{block} printed:\n{printed}"
        for code in block.checks:
            self._python(code, f"{block} (check)", more=self.ours)

    def _is_expected(self, output, printed):
        return matches(output, printed)

    def _replaced(self, text):
        urls = {"stomp": self.broker.url, "amqp": self.broker.amqp_url}
        return _FOLDER.sub(f"{self.folder}/", _ADDRESS.sub(lambda match: urls[match["protocol"]], text))

    def _python(self, code, name, line=1, more=()):
        self.names |= dict(more)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * (line - 1) + self._replaced(code), name, "exec"), self.names)
        return printed.getvalue()

    def _shell(self, block):
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        variables = own_process.environment(PATH=path, JMS_PASSWORD=self.broker.password)
        command = ["bash", "-euo", "pipefail", "-c", self._replaced(block.code)]
        return own_process.run(command, seconds=_SECONDS, cwd=self.folder, env=variables).stdout

    # --- queries that blocks started and left running ------------------------------------------

    def _remember_queries(self):
        self.queries |= {query.id: query for query in self.spark.streams.active}

    def _queries_did_their_work(self):
        """Each query had a trigger, and none ended with an error."""
        for query in self.queries.values():
            wait_until(lambda query=query: query.lastProgress is not None or not query.isActive, _SECONDS)
            _did_not_fail(query)

    def _wait_until(self, true):
        """Wait for the work of a query; a query that fails ends the wait."""

        def true_or_failed():
            self._remember_queries()
            for query in self.queries.values():
                _did_not_fail(query)
            return true()

        wait_until(true_or_failed, _SECONDS)

    def stop_queries(self):
        for query in self.spark.streams.active:
            query.stop()


def _did_not_fail(query):
    error = query.exception()
    assert error is None, f"a query failed: {error}"
