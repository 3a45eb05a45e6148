from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from pyspark_jms.tools.testing.config import PERMISSIONS, Acceptor, AddressSettings, User, broker_xml

_CORE = "{urn:activemq:core}"
_ONE_USER = (User("a", "pw"),)
_GENERAL = AddressSettings(match="#", max_delivery_attempts=3, dead_letter_address="DLQ")


def _core(*, directory="/data", acceptors=(), users=_ONE_USER, settings=(_GENERAL,)):
    return ET.fromstring(broker_xml(Path(directory), acceptors, users, settings))[0]


def _permissions(core):
    """{match: {permission: roles}}"""
    return {
        setting.get("match"): {child.get("type"): child.get("roles") for child in setting}
        for setting in core.iter(f"{_CORE}security-setting")
    }


def _settings(core):
    """{match: {setting: text}}"""
    return {
        setting.get("match"): {child.tag.removeprefix(_CORE): child.text for child in setting}
        for setting in core.iter(f"{_CORE}address-setting")
    }


def test_directories_are_the_brokers_own_and_escaped():
    core = _core(directory="/data/<a> & b")
    assert core.findtext(f"{_CORE}journal-directory") == "/data/<a> & b/journal"
    assert core.findtext(f"{_CORE}persistence-enabled") == "true"


def test_acceptor_is_an_artemis_uri():
    options = {"protocols": "STOMP,CORE", "connectionTtl": "5000"}
    core = _core(acceptors=[Acceptor(name="stomp", host="127.0.0.1", port=61613, options=options)])
    texts = {acceptor.get("name"): acceptor.text for acceptor in core.iter(f"{_CORE}acceptor")}
    assert texts == {
        "in-vm": "vm://0",
        "stomp": "tcp://127.0.0.1:61613?protocols=STOMP,CORE;connectionTtl=5000",
    }


def test_the_broker_user_has_all_permissions():
    assert _permissions(_core()) == {"#": dict.fromkeys(PERMISSIONS, "a")}


def test_every_match_lists_every_user():
    users = [User("a", "pw"), User("b", "pw", permissions={"send", "consume"}, at={"orders": {"consume"}})]
    permissions = _permissions(_core(users=users))
    assert permissions["#"]["send"] == "a,b"
    assert permissions["#"]["manage"] == "a"
    assert permissions["orders"]["send"] == "a"
    assert permissions["orders"]["consume"] == "a,b"
    assert permissions.keys() == {"#", "orders"}


def test_restriction_of_every_address():
    permissions = _permissions(_core(users=[User("a", "pw"), User("b", "pw", at={"#": {"send"}})]))
    assert permissions["#"]["send"] == "a,b"
    assert permissions["#"]["consume"] == "a"


@pytest.mark.parametrize("wrong", [{"permissions": {"sned"}}, {"at": {"orders": {"sned"}}}])
def test_unknown_permission_is_refused(wrong):
    with pytest.raises(ValueError, match="sned"):
        User("a", "pw", **wrong)


def test_only_given_settings_are_written():
    small = AddressSettings(match="small.&", max_size_bytes=1000, address_full_policy="FAIL", auto_create_queues=False)
    settings = _settings(_core(settings=[_GENERAL, small]))
    assert settings == {
        "#": {
            "max-delivery-attempts": "3",
            "dead-letter-address": "DLQ",
            "auto-delete-queues": "false",
            "auto-delete-addresses": "false",
        },
        "small.&": {"max-size-bytes": "1000", "address-full-policy": "FAIL", "auto-create-queues": "false"},
    }
