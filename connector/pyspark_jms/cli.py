"""``pyspark-jms``: the commands of the connector. One function adds a command, another one runs it."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from pyspark_jms import __version__
from pyspark_jms.errors import EmbeddedBrokerError, JMSError

if TYPE_CHECKING:
    from pyspark_jms.options.source import SourceOptions
    from pyspark_jms.testing import EmbeddedArtemis

__all__ = ["main"]

_DEFAULT_PASSWORD = "artemis"  # noqa: S105 - the default of every Artemis container, and printed: not a secret

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - there is no public name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code. A [JMS_...] error is printed, and the code is 1."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except JMSError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="pyspark-jms", description="JMS queues and topics as Spark streaming sources and sinks."
    )
    parser.add_argument("--version", action="version", version=f"pyspark-jms {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (_add_demo, _add_broker, _add_check, _add_unsubscribe):
        add(commands)
    return parser


# --- demo ------------------------------------------------------------------------------------


def _add_demo(commands: _Commands) -> None:
    parser = commands.add_parser(
        "demo",
        help="run a broker and a Spark job that routes orders; takes a minute",
        description="Start a broker, send orders to a queue, run a Spark job that reads, enriches and routes them to "
        "other queues, and compare the result with the expected one. Needs Java 17 or newer. The first run downloads "
        "the broker's jars. All other files are removed at the end.",
    )
    parser.set_defaults(run=_run_demo)


def _run_demo(_options: argparse.Namespace) -> int:
    from pyspark_jms import demo

    return demo.run()


# --- broker ----------------------------------------------------------------------------------


def _add_broker(commands: _Commands) -> None:
    parser = commands.add_parser(
        "broker",
        help="run an Artemis broker on this machine, without Docker",
        description="Run an Apache Artemis broker until Ctrl-C or SIGTERM. Needs Java 17 or newer. The first start "
        "downloads the broker's jars with Spark's resolver of packages. Messages are stored in --dir.",
        epilog="When the broker is ready, it prints one line with URL and user. The line has the password only if it "
        "is the default password.",
    )
    parser.set_defaults(run=_run_broker)
    _add_broker_options(parser)


def _add_broker_options(parser: argparse.ArgumentParser) -> None:
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


def _run_broker(options: argparse.Namespace) -> int:
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


# --- check -----------------------------------------------------------------------------------


def _add_check(commands: _Commands) -> None:
    parser = commands.add_parser(
        "check",
        help="find out what a broker can do for a user, and what is on a queue",
        description="Connect, test on a scratch queue the features that source and sink need, and print their "
        "guarantees on this broker. With --queue, also print the depth of a queue, its body types, and messages "
        "that cannot be received over STOMP; the messages stay on the queue. The exit code is 1 if there is a "
        "problem.",
        epilog="To inspect a queue, the user needs the permission `manage`. Without it, the other checks run.",
    )
    parser.set_defaults(run=_run_check)
    add = parser.add_argument
    shown = "(default: %(default)s)"
    _add_access(parser)
    add("--queue", metavar="NAME", help="also check this queue")
    add(
        "--receive",
        action="store_true",
        help="also receive the messages and give them back: exact, but meanwhile no other consumer receives them",
    )
    add(
        "--max",
        default=10_000,
        type=int,
        metavar="N",
        help=f"maximum messages to receive, and to list in delivery {shown}",
    )
    add("--scratch-queue", default="pyspark-jms.check", metavar="NAME", help=f"queue for test messages {shown}")
    add("--json", action="store_true", help="print JSON")


def _add_access(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--broker-url",
        required=True,
        metavar="URL",
        help="broker: stomp://, stomp+ssl://, amqp:// or amqps://HOST:PORT",
    )
    add("--user", help="user name")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="file with the password")
    password.add_argument("--password-env", metavar="NAME", help="environment variable with the password")
    add(
        "--option",
        action="append",
        default=[],
        type=_option,
        metavar="NAME=VALUE",
        help="any other option of the source, as sslCaFile=ca.pem",
    )


def _option(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    return name, value


def _run_check(options: argparse.Namespace) -> int:
    from pyspark_jms.check.findings import as_json, as_table, failed
    from pyspark_jms.check.run import CheckRequest, run_checks

    parsed = _source_options(options, queue=options.scratch_queue)
    request = CheckRequest(
        settings=parsed.connection,
        queue=options.queue,
        limit=options.max,
        receive=options.receive,
        scratch_queue=options.scratch_queue,
    )
    findings = run_checks(request)
    print(as_json(findings) if options.json else as_table(findings))
    return int(failed(findings))


def _source_options(options: argparse.Namespace, **more: str | None) -> "SourceOptions":
    from pyspark_jms.options.source import SourceOptions

    given = {
        "brokerUrl": options.broker_url,
        "user": options.user,
        "passwordFile": options.password_file,
        "passwordEnv": options.password_env,
        **more,
        **dict(options.option),
    }
    return SourceOptions.parse({name: value for name, value in given.items() if value is not None})


# --- unsubscribe -----------------------------------------------------------------------------


def _add_unsubscribe(commands: _Commands) -> None:
    parser = commands.add_parser(
        "unsubscribe",
        help="delete a durable topic subscription that no query reads any more",
        description="Delete a durable subscription with all its messages. The broker refuses it while a consumer reads "
        "the subscription (RabbitMQ does not refuse it).",
        epilog="The subscription of a stopped query stays, so that no message is lost. A subscription without a "
        "consumer fills the broker's storage.",
    )
    parser.set_defaults(run=_run_unsubscribe)
    add = parser.add_argument
    _add_access(parser)
    add("--topic", required=True, metavar="NAME", help="topic of the subscription")
    add("--subscription-name", required=True, metavar="NAME", help="the query's option subscriptionName")
    add("--client-id", metavar="ID", help="the query's option clientId; without it, the subscription is shared")


def _run_unsubscribe(options: argparse.Namespace) -> int:
    from pyspark_jms.amqp.link.subscriptions import end_subscription as end_over_amqp
    from pyspark_jms.stomp.link.subscriptions import end_subscription as end_over_stomp

    shared = "true" if options.client_id is None else None
    parsed = _source_options(
        options,
        topic=options.topic,
        subscriptionName=options.subscription_name,
        clientId=options.client_id,
        sharedSubscription=shared,
    )
    assert parsed.durable is not None
    if parsed.connection.addresses[0].protocol == "amqp":
        end_over_amqp(parsed.connection, parsed.durable)
    else:
        end_over_stomp(parsed.connection, parsed.destinations[0], parsed.durable)
    print(f"{parsed.durable}: ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
