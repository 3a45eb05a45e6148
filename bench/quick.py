"""`make bench-quick`: the connector beside a raw socket and stomp.py, on a broker of its own, in one table.

``--messages`` and ``--rounds`` scale it; ``--out`` is where the JSON goes (default: bench/latest.json).
"""

import sys
from pathlib import Path

# The project, not this folder: its selectors.py and decode.py would stand in for modules of those names.
ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)

import argparse  # noqa: E402 - after the path
import json  # noqa: E402

from bench.machine import facts, load_average  # noqa: E402
from bench.rounds import run  # noqa: E402
from bench.table import as_json, as_text  # noqa: E402


def main() -> None:
    arguments = _arguments()
    load = load_average()
    outcome = run(messages=arguments.messages, rounds=arguments.rounds)
    document = as_json(outcome.figures, per_transaction=outcome.per_transaction)
    document["machine"] = facts(outcome.versions, load)
    arguments.out.write_text(json.dumps(document, indent=2) + "\n")
    print(as_text(document))
    print(f"written to {arguments.out}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000, help="of each case in a round")
    parser.add_argument("--rounds", type=int, default=3, help="that count; one that does not comes first")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "latest.json")
    arguments = parser.parse_args()
    if arguments.messages < 1 or arguments.rounds < 1:
        parser.error("--messages and --rounds begin at 1")
    return arguments


if __name__ == "__main__":
    main()
