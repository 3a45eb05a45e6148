import json

from pyspark_jms.errors import JMSSecurityError
from pyspark_jms.tools.check.findings import Finding, Verdict, as_json, as_markdown, as_table, failed

FINE = Finding(name="broker", value="artemis")
NOTE = Finding(name="management", value="not for this user", verdict=Verdict.NOTE, advice="It needs a permission.")
PROBLEM = Finding(
    name="body types", value="map 3 " * 30, verdict=Verdict.PROBLEM, advice="Läuft so nicht.", details={"map": 3}
)


def test_only_a_problem_fails():
    assert not failed([])
    assert not failed([FINE, NOTE])
    assert failed([FINE, PROBLEM, NOTE])


def test_the_table_marks_wraps_and_aligns():
    lines = as_table([FINE, NOTE, PROBLEM]).splitlines()
    assert lines[0] == "  broker                artemis"
    assert lines[1] == "- management            not for this user"
    assert lines[2] == "                        It needs a permission."
    assert lines[3].startswith("! body types            map 3 map 3")
    assert lines[-1] == "                        Läuft so nicht."
    assert {line[:24].strip() for line in lines[4:]} == {""}
    assert max(map(len, lines)) <= 110
    assert " ".join(" ".join(lines[3:-1]).split()) == f"! body types {'map 3 ' * 30}".strip()


def test_json_has_all_fields():
    output = json.loads(as_json([FINE, PROBLEM]))
    assert output["ok"] is False
    assert output["findings"] == [
        {"name": "broker", "verdict": "fine", "value": "artemis", "advice": ""},
        {
            "name": "body types",
            "verdict": "problem",
            "value": PROBLEM.value,
            "advice": "Läuft so nicht.",
            "details": {"map": 3},
        },
    ]
    assert json.loads(as_json([NOTE]))["ok"] is True


def test_an_error_is_a_finding():
    error = JMSSecurityError("Refused.", "Ask for it.")
    assert Finding.of_error("x", error) == Finding(
        name="x", value="Refused.", verdict=Verdict.NOTE, advice="Ask for it."
    )
    assert Finding.of_error("x", error, Verdict.PROBLEM, "Other.").advice == "Other."


def test_the_report_is_markdown():
    findings = (
        Finding("order", "kept"),
        Finding("selector", "a|b\nc", Verdict.NOTE, "Report it."),
        Finding("bodies", "lost", Verdict.PROBLEM),
    )
    text = as_markdown("Conformance of X/1 over AMQP 1.0", {"connector": "pyspark-jms 0.1.0"}, findings)
    assert text.startswith(
        "# Conformance of X/1 over AMQP 1.0\n\n|  |  |\n| --- | --- |\n| connector | pyspark-jms 0.1.0 |"
    )
    assert (
        "| order | as assumed | kept |\n| selector | note | a\\|b c Report it. |\n| bodies | **problem** | lost |"
        in text
    )
