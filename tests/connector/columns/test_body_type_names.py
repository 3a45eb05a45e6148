from pyspark_jms.columns.body_type_names import BODY_TYPE_NAMES
from pyspark_jms.columns.row_bodies import BODY_TYPES


def test_a_code_is_the_same_body_type_for_source_and_sink():
    assert BODY_TYPE_NAMES.to_pylist() == [kind.value for kind in BODY_TYPES]
