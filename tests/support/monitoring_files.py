"""The dashboard and the alert rules of docs/monitoring: their expressions."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs" / "monitoring"
VARIABLES = {"$query": ".*", "$__rate_interval": "1m"}
"""Of Grafana."""


def dashboard_expressions():
    dashboard = json.loads((FOLDER / "grafana-dashboard.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    return [_filled(expression) for expression in expressions]


def _filled(expression):
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value)
    assert "$" not in expression, expression
    return expression


def rule_expressions():
    """The rules are one line each: no YAML parser is needed."""
    return re.findall(r"^ +expr: (.+)$", (FOLDER / "alerts.yml").read_text(), re.MULTILINE)


def names_in(expression):
    return re.findall(r"pyspark_jms_\w+", expression)
