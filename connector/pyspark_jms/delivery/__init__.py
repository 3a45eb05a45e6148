"""Which message may be acknowledged when: states and ledgers. Pure; knows no protocol and no Spark."""
