"""What every AMQP dialect must describe."""

import pytest

from pyspark_jms.amqp.dialects import DIALECTS


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_a_product_belongs_to_one_dialect(dialect):
    others = [other for other in DIALECTS.values() if other is not dialect]
    for product in dialect.products:
        assert not any(product.startswith(other.products or ("\0",)) for other in others)
