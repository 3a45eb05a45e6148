import ssl

import pytest

from pyspark_jms.errors import JMSSecurityError
from pyspark_jms.network.address import Address
from pyspark_jms.network.settings import ConnectionSettings, Password, TlsSettings

SECRET = "s3cr3t"


# --- passwords ---------------------------------------------------------------------------------------


def test_a_password_as_it_is():
    assert Password(value=SECRET).reveal() == SECRET
    assert Password(value="").reveal() == ""


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_file_is_read_each_time_without_its_last_line_end(tmp_path, end):
    file = tmp_path / "password"
    password = Password(file=str(file))
    for text in (SECRET, " zürich \t"):
        file.write_text(text + end, encoding="utf-8", newline="")
        assert password.reveal() == text


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(JMSSecurityError, match=r"JMS_SECURITY.*passwordFile .*/none .*No such file"):
        Password(file=str(tmp_path / "none")).reveal()
    (tmp_path / "binary").write_bytes(b"\xff" + SECRET.encode())
    with pytest.raises(JMSSecurityError, match="passwordFile") as error:
        Password(file=str(tmp_path / "binary")).reveal()
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    "value",
    [
        Password(value=SECRET),
        TlsSettings(key_password=Password(value=SECRET)),
        ConnectionSettings(addresses=(Address("h", 1),), user="me", password=Password(value=SECRET)),
    ],
)
def test_nothing_shows_a_password(value):
    assert SECRET not in f"{value!r} {value}"
    assert "redacted" in repr(value)


# --- TLS ---------------------------------------------------------------------------------------------


def test_the_peer_is_verified_unless_told_otherwise():
    context = TlsSettings().context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    context = TlsSettings(verify_hostname=False).context()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)


def test_a_ca_file_takes_the_place_of_the_systems(authority):
    certificates = TlsSettings(ca_file=authority.cert).context().get_ca_certs()
    assert [dict(part[0] for part in c["subject"])["commonName"] for c in certificates] == ["ours"]


def test_an_encrypted_key(authority):
    pair = authority.issue("sealed", password=SECRET.encode())
    TlsSettings(cert_file=pair.cert, key_file=pair.key, key_password=Password(value=SECRET)).context()
