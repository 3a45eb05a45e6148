"""``pyspark-jms broker`` and ``demo``: an Artemis broker on this machine until Ctrl-C, or for a Spark job."""

import argparse
import os
import signal
import sys
import time
from typing import TYPE_CHECKING

from pyspark_jms.errors import EmbeddedBrokerError
from pyspark_jms.tools.cli.command import Commands

if TYPE_CHECKING:
    from pyspark_jms.tools.testing.embedded import EmbeddedArtemis

__all__ = ["add_broker", "add_demo"]

_DEFAULT_PASSWORD = "artemis"  # noqa: S105 - the default of every Artemis container, and printed: not a secret
_USUAL = {False: 5672, True: 5671}
"""Whether with TLS → the port of AMQP."""


def add_broker(commands: Commands) -> None:
    parser = commands.add_parser(
        "broker",
        help="run an Artemis broker on this machine, without Docker",
        description="Run an Apache Artemis broker until Ctrl-C or SIGTERM. Needs Java 17 or newer. The first start "
        "downloads the broker's jars with Spark's resolver of packages. Messages are stored in --dir.",
        epilog="When the broker is ready, it prints one line with URL and user. The line has the password only if it "
        "is the default password.",
    )
    parser.set_defaults(run=_run)
    add = parser.add_argument
    shown = "(default: %(default)s)"
    add("--dir", default="artemis-data", help=f"folder for messages, configuration and broker.log {shown}")
    _add_address(parser)
    add(
        "--user",
        default=os.environ.get("JMS_BROKER_USER", "artemis"),
        help=f"user name; also the environment variable JMS_BROKER_USER {shown}",
    )
    add(
        "--password",
        metavar="WORD",
        help="password; other users of the machine can see it, but not the environment variable JMS_BROKER_PASSWORD",
    )
    _add_tls(parser)
    add(
        "--max-delivery-attempts",
        default=10,
        type=int,
        metavar="N",
        help=f"delivery attempts before a message is moved to queue DLQ {shown}",
    )
    add("--heap", default="512m", help=f"memory of the Java virtual machine {shown}")
    add(
        "--benchmark",
        action="store_true",
        help="use the garbage collector and compiler of a server; also increase --heap",
    )


def _add_address(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    shown = "(default: %(default)s)"
    add(
        "--host",
        default="127.0.0.1",
        help=f"address to listen on; 0.0.0.0 accepts connections from other machines {shown}",
    )
    add("--port", default=61613, type=int, help=f"port for STOMP and AMQP; 0 selects a free port {shown}")
    add(
        "--amqp-port",
        type=int,
        metavar="PORT",
        help="another port for AMQP; 0 selects a free port. Without this argument it is 5672, with --tls-cert 5671. If"
        " that port is in use, or with --port 0, AMQP clients use --port",
    )


def _add_tls(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tls-cert", metavar="PEM", help="certificate; --port and --amqp-port then accept TLS only")
    add("--tls-key", metavar="PEM", help="key of the certificate, if it is in another file")
    add("--tls-client-ca", metavar="PEM", help="require client certificates of this authority")
    add("--plain-port", type=int, metavar="PORT", help="with --tls-cert: a second port without TLS")


def _run(options: argparse.Namespace) -> int:
    from pyspark_jms.tools.testing.config import Tls
    from pyspark_jms.tools.testing.embedded import EmbeddedArtemis

    if options.tls_cert is None and (options.tls_key or options.tls_client_ca or options.plain_port is not None):
        raise EmbeddedBrokerError("--tls-key, --tls-client-ca and --plain-port need TLS.", "Add --tls-cert.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tls = options.tls_cert and Tls(cert=options.tls_cert, key=options.tls_key, client_ca=options.tls_client_ca)
    amqp_port = options.amqp_port if options.amqp_port is not None else _usual_amqp_port(options)
    password = options.password or os.environ.get("JMS_BROKER_PASSWORD", _DEFAULT_PASSWORD)
    began = time.monotonic()
    try:
        with EmbeddedArtemis(
            options.dir,
            options.port,
            options.user,
            password,
            host=options.host,
            tls=tls,
            plain_port=options.plain_port,
            amqp_port=amqp_port,
            max_delivery_attempts=options.max_delivery_attempts,
            heap=options.heap,
            benchmark=options.benchmark,
        ) as broker:
            if amqp_port is None and options.port != 0:
                in_use = f"Port {_USUAL[bool(tls)]} of {broker.host} is in use"
                print(f"{in_use}: AMQP clients connect to port {broker.amqp_port}.", file=sys.stderr, flush=True)
            print(_ready_line(broker, time.monotonic() - began), flush=True)
            broker.wait()
            raise EmbeddedBrokerError("The broker ended unexpectedly.", f"See its log {broker.log}.")
    except KeyboardInterrupt:
        return 0


def _usual_amqp_port(options: argparse.Namespace) -> int | None:
    """Return the port that AMQP clients try first, or None if another program or --plain-port uses it."""
    from pyspark_jms.tools.testing.ports import is_free

    usual = _USUAL[bool(options.tls_cert)]
    # Several brokers with --port 0 run side by side, so none of them takes a fixed port.
    if options.port == 0 or usual == options.plain_port:
        return None
    return usual if usual == options.port or is_free(options.host, usual) else None


def _ready_line(broker: "EmbeddedArtemis", seconds: float) -> str:
    urls = " ".join(filter(None, dict.fromkeys((broker.url, broker.plain_url, broker.amqp_url))))
    shown = f" password={broker.password}" if broker.password == _DEFAULT_PASSWORD else ""
    return f"{urls} user={broker.user}{shown} (ready in {seconds:.1f} s, data in {broker.directory}; Ctrl-C stops it)"


# --- demo ---------------------------------------------------------------------------------------------


def add_demo(commands: Commands) -> None:
    parser = commands.add_parser(
        "demo",
        help="run a broker and a Spark job that routes orders; takes a minute",
        description="Start a broker, send orders to a queue, run a Spark job that reads, enriches and routes them to "
        "other queues, and compare the result with the expected one. Needs Java 17 or newer. The first run downloads "
        "the broker's jars. All other files are removed at the end.",
    )
    parser.set_defaults(run=_run_demo)


def _run_demo(_options: argparse.Namespace) -> int:
    from pyspark_jms.tools import demo

    return demo.run()
