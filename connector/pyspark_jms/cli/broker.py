"""``pyspark-jms broker``: an Artemis broker on this machine, until Ctrl-C."""

import argparse
import os
import signal
import time
from typing import TYPE_CHECKING

from pyspark_jms.cli.command import Command
from pyspark_jms.errors import EmbeddedBrokerError

if TYPE_CHECKING:
    from pyspark_jms.testing import EmbeddedArtemis

__all__ = ["COMMAND"]

_DEFAULT_PASSWORD = "artemis"  # noqa: S105 - the default of every Artemis container, and printed: not a secret


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    shown = "(default: %(default)s)"
    add("--dir", default="artemis-data", help=f"folder for messages, configuration and broker.log {shown}")
    add(
        "--host",
        default="127.0.0.1",
        help=f"address to listen on; 0.0.0.0 accepts connections from other machines {shown}",
    )
    add("--port", default=61613, type=int, help=f"STOMP port; 0 selects a free port {shown}")
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


def _add_tls(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--tls-cert", metavar="PEM", help="certificate; --port then accepts TLS only")
    add("--tls-key", metavar="PEM", help="key of the certificate, if it is in another file")
    add("--tls-client-ca", metavar="PEM", help="require client certificates of this authority")
    add("--plain-port", type=int, metavar="PORT", help="with --tls-cert: a second port without TLS")


def _run(options: argparse.Namespace) -> int:
    from pyspark_jms.testing import EmbeddedArtemis, Tls

    if options.tls_cert is None and (options.tls_key or options.tls_client_ca or options.plain_port is not None):
        raise EmbeddedBrokerError("--tls-key, --tls-client-ca and --plain-port need TLS.", "Add --tls-cert.")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tls = options.tls_cert and Tls(cert=options.tls_cert, key=options.tls_key, client_ca=options.tls_client_ca)
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
            max_delivery_attempts=options.max_delivery_attempts,
            heap=options.heap,
            benchmark=options.benchmark,
        ) as broker:
            print(_ready_line(broker, time.monotonic() - began), flush=True)
            broker.wait()
            raise EmbeddedBrokerError("The broker ended unexpectedly.", f"See its log {broker.log}.")
    except KeyboardInterrupt:
        return 0


def _ready_line(broker: "EmbeddedArtemis", seconds: float) -> str:
    urls = " ".join(filter(None, dict.fromkeys((broker.url, broker.plain_url, broker.amqp_url))))
    shown = f" password={broker.password}" if broker.password == _DEFAULT_PASSWORD else ""
    return f"{urls} user={broker.user}{shown} (ready in {seconds:.1f} s, data in {broker.directory}; Ctrl-C stops it)"


COMMAND = Command(
    name="broker",
    help="run an Artemis broker on this machine, without Docker",
    description="Run an Apache Artemis broker until Ctrl-C or SIGTERM. Needs Java 17 or newer. The first start "
    "downloads the broker's jars with Spark's resolver of packages. Messages are stored in --dir.",
    epilog="When the broker is ready, it prints one line with URL and user. The line has the password only if it "
    "is the default password.",
    add_arguments=_add_arguments,
    run=_run,
)
