"""Every state with every event, against the tables written out here, and against the diagrams of its page."""

import re
from pathlib import Path

import pytest
from state_diagrams import arrows

from pyspark_jms.delivery.states import IN_JOURNAL, WITH_JOURNAL, WITHOUT_JOURNAL, Event, MessageState
from pyspark_jms.errors import IllegalStateError

PAGE = Path(__file__).parents[3] / "docs/internals.md"
TABLES = {table.name.removeprefix("a message "): table for table in (WITHOUT_JOURNAL, WITH_JOURNAL, IN_JOURNAL)}

# ruff: noqa: E501  # tables
WRITTEN_OUT = {
    "without a journal": """
                        | store | offer   | finish            | ack           | receipt      | lose              | recognise | give up
      received          |       | offered |                   |               |              | forgotten         |           |
      durable           |       |         |                   |               |              |                   |           |
      offered           |       |         | done              |               |              | lost              |           |
      done              |       |         |                   | acknowledging |              | ack on redelivery |           |
      acknowledging     |       |         |                   |               | acknowledged | ack on redelivery |           |
      acknowledged      |       |         |                   |               |              |                   |           |
      lost              |       |         | ack on redelivery |               |              | lost              | offered   |
      ack on redelivery |       |         |                   |               |              | ack on redelivery | done      | forgotten
      forgotten         |       |         |                   |               |              |                   |           |
    """,
    "with a journal": """
                        | store   | offer | finish | ack           | receipt      | lose      | recognise | give up
      received          | durable |       |        |               |              | forgotten |           |
      durable           |         |       |        | acknowledging |              | lost      |           |
      offered           |         |       |        |               |              |           |           |
      done              |         |       |        |               |              |           |           |
      acknowledging     |         |       |        |               | acknowledged | lost      |           |
      acknowledged      |         |       |        |               |              |           |           |
      lost              |         |       |        |               |              | lost      | durable   | forgotten
      ack on redelivery |         |       |        |               |              |           |           |
      forgotten         |         |       |        |               |              |           |           |
    """,
    "in a journal": """
                        | store | offer   | finish | ack | receipt | lose | recognise | give up
      received          |       |         |        |     |         |      |           |
      durable           |       | offered |        |     |         |      |           |
      offered           |       |         | done   |     |         |      |           |
      done              |       |         |        |     |         |      |           |
      acknowledging     |       |         |        |     |         |      |           |
      acknowledged      |       |         |        |     |         |      |           |
      lost              |       |         |        |     |         |      |           |
      ack on redelivery |       |         |        |     |         |      |           |
      forgotten         |       |         |        |     |         |      |           |
    """,
}


def written_out(name):
    head, *rows = [[cell.strip() for cell in line.split("|")] for line in WRITTEN_OUT[name].strip("\n ").split("\n")]
    return {(row[0], event): to for row in rows for event, to in zip(head[1:], row[1:], strict=True)}


@pytest.mark.parametrize("event", Event, ids=lambda event: event.value)
@pytest.mark.parametrize("state", MessageState, ids=lambda state: state.value)
@pytest.mark.parametrize("name", TABLES)
def test_every_event_in_every_state(name, state, event):
    wanted = written_out(name)[state.value, event.value]
    if wanted:
        assert TABLES[name].after(state, event) is MessageState(wanted)
        return
    with pytest.raises(IllegalStateError) as refused:
        TABLES[name].after(state, event, "sequence 7")
    assert str(refused.value).startswith(
        f"[JMS_ILLEGAL_STATE] Event '{event.value}' for a message {name} that is '{state.value}' (sequence 7)."
    )


# --- docs/internals.md -------------------------------------------------------------------------


def drawn(name):
    """The arrows of the diagram: from, event, to."""
    text = PAGE.read_text()
    diagram = text.partition(f"stateDiagram-v2\n    %% {name}\n")[2].partition("```")[0]
    arrows = re.findall(r"^ +(\w+) --> (\w+): (.+)$", diagram, re.MULTILINE)
    assert len(arrows) == diagram.count("-->")
    return sorted(
        (a.replace("_", " "), event, b.replace("_", " ")) for a, b, events in arrows for event in events.split(", ")
    )


@pytest.mark.parametrize("name", TABLES)
def test_the_diagram_shows_the_table(name):
    assert drawn(name) == arrows(TABLES[name])
