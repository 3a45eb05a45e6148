import pytest

from pyspark_jms.jms.wildcards import has_wildcards, may_receive


@pytest.mark.parametrize(
    ("read", "queue", "does"),
    [
        ("orders", "orders", True), ("orders", "orders.dead", False), ("orders", "dead", False),
        ("orders.*", "orders.dead", True), ("orders.*", "orders", False), ("orders.*", "orders.dead.eu", False),
        ("orders.#", "orders.dead.eu", True), ("orders.#", "orders", True), ("orders.#", "order.dead", False),
        ("orders.>", "orders.dead", True), ("*.dead", "orders.dead", True), ("#.eu", "orders.dead.eu", True),
        ("#.eu", "orders.eu.dead", False), ("#", "anything", True),
        ("q", "q::q", True), ("q::q", "q", True), ("a::q", "a", True), ("a::q", "a::other", True),
        ("a::q", "b", False), ("a.#::q", "a.dead", True),
    ],
)  # fmt: skip
def test_what_a_reader_receives_too(read, queue, does):
    assert may_receive(read, queue) is does


@pytest.mark.parametrize(("name", "does"), [("orders", False), ("orders.#", True), ("orders.*", True), ("a>b", False)])
def test_a_pattern_of_a_broker_with_management(name, does):
    assert has_wildcards(name) is does
