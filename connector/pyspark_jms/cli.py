"""``pyspark-jms``: the commands around the connector. A command is one function that adds it and one that runs it."""

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

_DEFAULT_PASSWORD = "artemis"  # noqa: S105 - the one every Artemis container starts with; printed, so no secret

_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001 - it has no public name


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its return value is the exit code. A [JMS_...] error is one message and code 1."""
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
        help="a broker, a Spark job and orders in and out: see it work in a minute",
        description="Start a broker, send orders to a queue, run a Spark job that reads, enriches and routes them to "
        "other queues, and compare what came out with what had to. Needs Java 17 or newer; the first run fetches "
        "the broker's jars. Nothing stays behind.",
    )
    parser.set_defaults(run=_run_demo)


def _run_demo(_options: argparse.Namespace) -> int:
    from pyspark_jms import demo

    return demo.run()


# --- broker ----------------------------------------------------------------------------------


def _add_broker(commands: _Commands) -> None:
    parser = commands.add_parser(
        "broker",
        help="run a real Artemis broker on this machine, no Docker needed",
        description="Run an Apache Artemis broker until Ctrl-C or SIGTERM. Needs Java 17 or newer; the first "
        "start fetches the broker's jars as Spark fetches packages. Messages stay in --dir.",
        epilog="The one line printed when the broker is ready holds url and user; the password only while it is "
        "the default one.",
    )
    parser.set_defaults(run=_run_broker)
    add = parser.add_argument
    shown = "(default: %(default)s)"
    add("--dir", default="artemis-data", help=f"folder of messages, configuration and broker.log {shown}")
    add("--host", default="127.0.0.1", help=f"address to listen on; 0.0.0.0 lets other machines in {shown}")
    add("--port", default=61613, type=int, help=f"STOMP port; 0 takes any free one {shown}")
    add("--user", default=os.environ.get("JMS_BROKER_USER", "artemis"), help=f"or JMS_BROKER_USER {shown}")
    add("--password", metavar="WORD", help="or JMS_BROKER_PASSWORD, which other users of the machine cannot see")
    add("--tls-cert", metavar="PEM", help="speak TLS on --port with this certificate")
    add("--tls-key", metavar="PEM", help="its key, if not in the same file")
    add("--tls-client-ca", metavar="PEM", help="ask clients for a certificate of this authority")
    add("--plain-port", type=int, metavar="PORT", help="with --tls-cert: a second port without TLS")
    add("--max-delivery-attempts", default=10, type=int, metavar="N", help=f"then a message goes to DLQ {shown}")
    add("--heap", default="512m", help=f"memory of the Java virtual machine {shown}")
    add("--benchmark", action="store_true", help="a server's garbage collector and compiler; raise --heap too")


def _run_broker(options: argparse.Namespace) -> int:
    from pyspark_jms.testing import EmbeddedArtemis, Tls

    if options.tls_cert is None and (options.tls_key or options.tls_client_ca or options.plain_port is not None):
        raise EmbeddedBrokerError("--tls-key, --tls-client-ca and --plain-port belong to TLS.", "Give --tls-cert.")
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
            raise EmbeddedBrokerError("The broker ended by itself.", f"Its log is {broker.log}.")
    except KeyboardInterrupt:
        return 0


def _ready_line(broker: "EmbeddedArtemis", seconds: float) -> str:
    urls = " ".join(filter(None, dict.fromkeys((broker.url, broker.plain_url))))
    shown = f" password={broker.password}" if broker.password == _DEFAULT_PASSWORD else ""
    return f"{urls} user={broker.user}{shown} (ready in {seconds:.1f} s, data in {broker.directory}; Ctrl-C stops it)"


# --- check -----------------------------------------------------------------------------------


def _add_check(commands: _Commands) -> None:
    parser = commands.add_parser(
        "check",
        help="what can this broker do for me, and what is on that queue?",
        description="Connect, try on a scratch queue what source and sink rely on, and say what they can promise here. "
        "With --queue also what lies there: depth, body types, messages that no reader over STOMP will "
        "receive; none is taken. The exit code is 1 when there is a problem.",
        epilog="What is on a queue is asked of the broker, for which a user needs the permission to manage; without "
        "it the rest is checked.",
    )
    parser.set_defaults(run=_run_check)
    add = parser.add_argument
    shown = "(default: %(default)s)"
    _add_access(parser)
    add("--queue", metavar="NAME", help="look at this queue, too")
    add(
        "--receive",
        action="store_true",
        help="also receive what is there and give it back: exact, but until then no other consumer sees it",
    )
    add("--max", default=10_000, type=int, metavar="N", help=f"receive, or look at in delivery, so many {shown}")
    add("--scratch-queue", default="pyspark-jms.check", metavar="NAME", help=f"where to try things {shown}")
    add("--json", action="store_true", help="for programs")


def _add_access(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--broker-url", required=True, metavar="URL", help="stomp://HOST:61613 or stomp+ssl://HOST:61614")
    add("--user")
    password = parser.add_mutually_exclusive_group()
    password.add_argument("--password-file", metavar="FILE", help="a file that holds the password")
    password.add_argument("--password-env", metavar="NAME", help="an environment variable that holds it")
    add("--option", action="append", default=[], type=_option, metavar="NAME=VALUE", help="any other: sslCaFile=ca.pem")


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
        most=options.max,
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
        help="end a durable topic subscription that no query reads any more",
        description="End a durable subscription: the broker stops keeping the topic's messages for it, and what it "
        "holds is gone. It is refused while somebody reads it (RabbitMQ does not refuse).",
        epilog="A stopped query leaves its subscription standing, so that nothing is missed. A subscription that "
        "nobody reads fills the broker.",
    )
    parser.set_defaults(run=_run_unsubscribe)
    add = parser.add_argument
    _add_access(parser)
    add("--topic", required=True, metavar="NAME")
    add("--subscription-name", required=True, metavar="NAME")
    add("--client-id", metavar="ID", help="as the query has it; without one it is a shared subscription")


def _run_unsubscribe(options: argparse.Namespace) -> int:
    from pyspark_jms.stomp.link.subscriptions import end_subscription

    shared = "true" if options.client_id is None else None
    parsed = _source_options(
        options,
        topic=options.topic,
        subscriptionName=options.subscription_name,
        clientId=options.client_id,
        sharedSubscription=shared,
    )
    assert parsed.durable is not None
    end_subscription(parsed.connection, parsed.destinations[0], parsed.durable)
    print(f"{parsed.durable}: ended")
    return 0


if __name__ == "__main__":
    sys.exit(main())
