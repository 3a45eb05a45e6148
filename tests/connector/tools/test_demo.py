"""The demo as a user runs it, and the problems that it reports."""

import os
import re
import subprocess
from dataclasses import replace
from decimal import Decimal

import pytest
from commands import program

from pyspark_jms.jms.model import BodyType, DeliveryMode
from pyspark_jms.testing import JmsMessage, Typed
from pyspark_jms.tools import demo


def run_demo(**environment):
    return subprocess.run(
        program("demo"),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env=os.environ | environment,
    )


def message(order, **changes):
    """The expected message of an order."""
    _, total = demo.expected(order)
    values = order.properties | ({"total": str(total)} if total is not None else {})
    right = JmsMessage(
        body_type=BodyType.MAP if order.is_map else BodyType.TEXT,
        body=order.body,
        properties={name: Typed.of(value) for name, value in values.items()},
        message_id=None,
        correlation_id=str(order.number),
        reply_to=None,
        destination=None,
        delivery_mode=DeliveryMode.PERSISTENT,
        expiration=0,
        timestamp=1,
        delivery_time=0,
        redelivered=False,
        **order.headers,
    )
    return replace(right, **changes)


def all_right():
    return [(demo.expected(order)[0], message(order)) for order in demo.ORDERS]


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.deep
def test_the_demo_prints_every_order_and_returns_0():
    output = run_demo()
    assert (output.returncode, output.stderr) == (0, "")
    assert re.search(r"Sent +20 orders", output.stdout)
    assert re.search(r"Job +20 rows", output.stdout)
    rows = re.findall(r"^(\d{4})  .*  (orders\.\w+) ? *(?:total ([\d.]+))?$", output.stdout, re.MULTILINE)
    assert rows == [(str(o.number), demo.expected(o)[0], str(demo.expected(o)[1] or "")) for o in demo.ORDERS]
    assert re.search(
        r"^Order 1003 in orders.europe: map message.*\n.*gift=False \(boolean\).*\n.*quantity=3 \(short\)",
        output.stdout,
        re.MULTILINE,
    )
    assert "Queue orders, its outputs and DLQ are empty." in output.stdout


def test_without_java_it_prints_the_error_and_returns_1(tmp_path):
    output = run_demo(JAVA_HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path))
    assert output.returncode == 1
    assert output.stderr.startswith("[JMS_EMBEDDED_BROKER]")
    assert f"JAVA_HOME={tmp_path}" in output.stderr


@pytest.mark.deep
@pytest.mark.broker
def test_an_error_of_spark_is_quoted_and_the_exit_code_is_1(tmp_path):
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory 1k\n")
    output = run_demo(SPARK_CONF_DIR=str(tmp_path))
    assert output.returncode == 1
    assert output.stderr.startswith("The Spark job failed.\n")
    assert re.search(r"^  spark \| .*(heap|memory)", output.stderr, re.MULTILINE)
    assert "Every order" not in output.stdout


def test_the_orders_reach_every_queue():
    assert {demo.expected(order)[0] for order in demo.ORDERS} == set(demo.OUTPUTS)
    assert demo.expected(replace(demo.ORDERS[0], quantity=1000, price=Decimal("0.999"))) == (
        "orders.europe",
        Decimal("999.000"),
    )
    assert demo.expected(replace(demo.ORDERS[0], quantity=1, price=Decimal(1000)))[0] == "orders.review"


def test_the_expected_result_has_no_differences():
    assert demo.differences(all_right()) == []


def test_missing_duplicated_and_unknown_messages_are_reported():
    received = all_right()
    strange = ("orders.world", message(demo.ORDERS[0], correlation_id="7"))
    problems = demo.differences([*received[1:], received[1], strange])
    assert problems[:2] == ["Order 1001 was received 0 times.", "Order 1002 was received 2 times."]
    assert len(problems) == 3
    assert problems[2].startswith("Order 7: expected None")


@pytest.mark.parametrize(
    "changes", [{"body": "{}"}, {"priority": 5}, {"type": None}, {"properties": {"total": Typed("string", "4.50")}}]
)
def test_a_changed_message_is_reported(changes):
    received = all_right()
    received[0] = (received[0][0], message(demo.ORDERS[0], **changes))
    (problem,) = demo.differences(received)
    assert problem.startswith("Order 1001: expected {")


def test_a_message_in_another_queue_is_reported():
    received = all_right()
    received[0] = ("orders.world", received[0][1])
    (problem,) = demo.differences(received)
    assert "'queue': 'orders.europe'" in problem
