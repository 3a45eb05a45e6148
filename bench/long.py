"""`make bench-long`: measures growth and runs the soak. Arguments select the measurements: size properties backlog
partitions batches queues soak. Without arguments all run, in about two hours; the soak takes 30 minutes of them.
``--protocol amqp`` measures the same over AMQP; the messages of a soak are sent over STOMP.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.command import ROOT
from bench.cost_model import Load, fitted
from bench.growth import AXES, PAGED, PAGING_BYTES, Point, measured_points
from bench.growth_table import as_text
from bench.machine import facts, load_average
from bench.protocols import PROTOCOLS
from bench.rounds import Stage, Variant, base_job, warm_up
from bench.soak import soak

SOAK = "soak"
_WARM_UP_SECONDS = 45


def main() -> None:
    options = _arguments()
    load = load_average()
    document: dict[str, Any] = _known(options.out)
    wanted = options.what or [*AXES, SOAK]
    # Only the backlog axis needs a broker that pages: a paged queue has limits of its own.
    paged, others = ([w for w in wanted if (w == PAGED) is is_paged] for is_paged in (True, False))
    for paging_bytes, what in ((None, others), (PAGING_BYTES, paged)):
        if what:
            with Stage.built(java=False, paging_bytes=paging_bytes) as stage:
                _measure(stage, what, options, document, load)
    print(as_text(document))
    if options.docs:
        from bench.publish import publish_growth  # imports matplotlib, which only --docs needs

        publish_growth(document, ROOT)


def _measure(
    stage: Stage, what: Sequence[str], options: argparse.Namespace, document: dict[str, Any], load: float
) -> None:
    job = base_job(stage.broker, options.messages)
    with Variant(stage, job, ("read.jms",)) as variant:
        warm_up(variant, seconds=_WARM_UP_SECONDS)
    protocol = PROTOCOLS[options.protocol]
    for axis in what:
        if axis == SOAK:
            found = soak(stage, job, protocol, minutes=options.minutes, per_second=options.per_second)
            document[protocol.prefix + SOAK] = found
        else:
            points = measured_points(stage, job, axis, protocol, most=options.most, rounds=options.rounds)
            document["growth"][protocol.prefix + axis] = [point.as_json() for point in _printed(points)]
        document[f"{protocol.prefix}machine"] = facts(stage.versions(), load)
        _fit(document)
        options.out.write_text(json.dumps(document, indent=2) + "\n")  # a later failure must not lose these results


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", choices=[*AXES, SOAK, []], metavar="WHAT")
    parser.add_argument("--messages", type=int, default=100_000, help="messages of a point, except for the backlog")
    parser.add_argument("--rounds", type=int, default=3, help="measured points of each step")
    parser.add_argument("--most", type=int, default=10_000_000, help="messages of the largest backlog")
    parser.add_argument("--protocol", choices=PROTOCOLS, default="stomp")
    parser.add_argument("--minutes", type=float, default=30, help="duration of the soak")
    parser.add_argument("--per-second", type=int, default=5_000, help="messages a second in the soak")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "growth.json")
    parser.add_argument("--docs", action="store_true", help="write the tables into docs/benchmarks.md")
    return parser.parse_args()


def _known(path: Path) -> dict[str, Any]:
    """The results of an earlier run; this run replaces only what it measures."""
    return json.loads(path.read_text()) if path.exists() else {"growth": {}}


def _printed(points: Any) -> Sequence[Point]:
    found = []
    for point in points:
        print(f"{point.axis} {point.value}: {point.messages / point.seconds:,.0f} messages/s", flush=True)
        found.append(point)
    return found


def _fit(document: dict[str, Any]) -> None:
    loads = [
        Load(
            messages=point["messages"],
            size=point["bytes"],
            batches=point["batches"],
            tasks=point["tasks"],
            seconds=sum(spent for role, spent in point["cpu"].items() if role != "broker"),
        )
        for axis, points in document["growth"].items()
        if axis in AXES  # the model is that of reading over STOMP
        for point in points
    ]
    if len(loads) > 4:
        document["cost"] = dict(fitted([load for load in loads if load.seconds]).as_json())


if __name__ == "__main__":
    main()
