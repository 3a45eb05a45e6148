"""The brokers that stand for Artemis and for Classic: embedded ones, or those that people run, by BROKER_AS."""

import os

import pytest
from artemis_as_created import ArtemisAsCreated, ArtemisBuiltIn
from classic_as_run import ClassicAsRun, ClassicInProduction

from pyspark_jms.testing import EmbeddedArtemis, EmbeddedClassic

AS_PEOPLE_RUN_THEM = {
    "artemis-as-created": ArtemisAsCreated,
    "artemis-built-in": ArtemisBuiltIn,
    "classic-as-run": ClassicAsRun,
    "classic-in-production": ClassicInProduction,
}

BROKER_AS = os.environ.get("BROKER_AS", "")
"""A name of the table. Tests of its product then run on it."""

NO_TRANSFORMER = "its AMQP connector has no transformer: other clients get what AMQP clients send as bytes"
BROWSE_ENDS = "its policy ends a browse after 400 messages, which is an error"

_chosen = AS_PEOPLE_RUN_THEM[BROKER_AS] if BROKER_AS else object
Artemis = _chosen if issubclass(_chosen, EmbeddedArtemis) else EmbeddedArtemis
Classic = _chosen if issubclass(_chosen, EmbeddedClassic) else EmbeddedClassic


def skip_as(kind, reason):
    """Skip a test on a broker that cannot do what it tests."""
    if kind == BROKER_AS:
        pytest.skip(reason)
