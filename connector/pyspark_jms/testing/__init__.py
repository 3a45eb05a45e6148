"""A real broker for a demo, a notebook or your own tests, with nothing but Python and Java."""

from pyspark_jms.testing.config import PERMISSIONS, AddressSettings, Tls, User
from pyspark_jms.testing.embedded import EmbeddedArtemis
from pyspark_jms.testing.operations import DeadLetter

__all__ = ["PERMISSIONS", "AddressSettings", "DeadLetter", "EmbeddedArtemis", "Tls", "User"]
