"""`make bench-quick`: compares the connector with raw sockets and a naive source, over STOMP and AMQP. Prints a table.

``--messages`` and ``--rounds`` set the size of the run; ``--out`` names the JSON file (default: bench/latest.json). The
benchmark starts its own broker.
"""

from bench.command import arguments, finish, fixed_costs, machine
from bench.one_query import latencies
from bench.results import cases_of, followed
from bench.rounds import QUICK, Stage, Variant, base_job, measure


def main() -> None:
    options = arguments(__doc__, messages=40_000, rounds=2, seconds=3, turns=5)
    facts = machine()
    document = fixed_costs(turns=options.turns) | {"warm_up_seconds": 0}
    with Stage.built(java=False) as stage:
        job = base_job(stage.broker, options.messages)
        with Variant(stage, job, QUICK) as variant:
            measurements = measure(variant, rounds=options.rounds)
        document |= followed(measurements) | {"cases": cases_of(measurements)}
        document |= latencies(stage.spark, job, per_second=100, seconds=options.seconds)
        facts |= stage.versions()
    finish(document, options, job, facts)


if __name__ == "__main__":
    main()
