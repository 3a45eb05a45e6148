import pytest

from pyspark_jms.delivery.journaled_ledger import JournaledLedger
from pyspark_jms.delivery.ledger import Ledger
from pyspark_jms.delivery.ledger_interface import Ack, DeliveryLedger
from pyspark_jms.delivery.subscription_ledger import AckRound


def members(protocol):
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize("ledger", [Ledger, JournaledLedger])
def test_both_ledgers_have_the_face(ledger):
    made_in_init = {"offered", "done", "recognised"} | {
        name for name in members(DeliveryLedger) if name.startswith(("waiting", "in_flight"))
    }
    assert {name for name in members(DeliveryLedger) - made_in_init if not hasattr(ledger, name)} == set()


def test_an_acknowledgement_round_has_the_face():
    assert {name for name in members(Ack) if not hasattr(AckRound, name)} == set()
