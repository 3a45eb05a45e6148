"""The picture of the dashboard: every panel is drawn from answers in the form of Prometheus."""

import dataclasses

import pytest
from PIL import Image

from tools.dashboard_picture import Answers, draw, panels

START = 1_700_000_000.0


def series(**labels):
    return {"metric": {"query": "orders", **labels}, "value": [START, "1"], "values": [[START, "1"], [START + 5, "2"]]}


def answers(with_data):
    """Answers with a series for each expression that has one of these words."""

    def ask(path, *, query, **parameters):
        wanted = {"query": {"time"}, "query_range": {"start", "end", "step"}}[path]
        assert set(parameters) == wanted
        return {"result": [series(guarantee="exactly-once")] if any(word in query for word in with_data) else []}

    return Answers(ask, START, START + 60)


def test_the_variables_of_grafana_are_filled():
    found = [expression for panel in panels() for expression, _ in panel.targets]
    assert len(found) > 17
    assert not [expression for expression in found if "$" in expression]


@pytest.mark.deep
def test_the_titles_of_panels_with_data_are_returned(tmp_path):
    picture = tmp_path / "dashboard.png"
    assert draw(panels(), answers(["query_up", "guarantee_info", "lag_messages"]), picture) == [
        "Queries",
        "Guarantee",
        "Lag",
    ]
    with Image.open(picture) as image:
        assert image.format == "PNG"
        assert image.width > 1_000
    assert picture.stat().st_size < 100_000


@pytest.mark.deep
def test_all_panels_can_have_data(tmp_path):
    assert draw(panels(), answers([""]), tmp_path / "dashboard.png") == [panel.title for panel in panels()]


def test_a_figure_that_is_not_a_number_is_left_out(tmp_path):
    def ask(path, **_):
        return {"result": [{"metric": {}, "value": [START, "1"], "values": [[START, "NaN"], [START + 5, "+Inf"]]}]}

    lines = [panel for panel in panels() if panel.kind == "timeseries"]
    assert draw(lines[:1], Answers(ask, START, START + 60), tmp_path / "dashboard.png") == [lines[0].title]


def test_an_unknown_unit_is_an_error(tmp_path):
    panel = next(panel for panel in panels() if panel.kind == "timeseries")
    with pytest.raises(KeyError, match="furlong"):
        draw([dataclasses.replace(panel, unit="furlong")], answers([""]), tmp_path / "dashboard.png")
