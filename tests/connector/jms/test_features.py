from pyspark_jms.jms.features import Feature


def test_a_page_can_tell_the_features_apart():
    assert len({feature.value for feature in Feature}) == len(Feature)
