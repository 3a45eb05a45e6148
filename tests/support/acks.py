"""The acknowledgement rounds of a ledger, as a broker's client goes through them."""


def due_ids(ledger, subscription=0):
    """The ids of what is due."""
    return [identifier for ack in ledger.due(subscription) for identifier in ack.ids]


def send(ledger, receipt, subscription=0):
    """Everything that is due is sent, with one receipt."""
    for ack in ledger.due(subscription):
        ack.sent(receipt)


def unconfirmed(ledger, subscription=0):
    """The oldest receipt that has not come."""
    return next((ack.receipt for ack in ledger.unconfirmed(subscription)), None)


def confirm(ledger, receipt, subscription=0):
    """The receipt comes. Returns how many messages it confirms."""
    return sum(ack.confirmed() for ack in ledger.unconfirmed(subscription) if ack.receipt == receipt)
