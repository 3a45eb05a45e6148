import itertools
from pathlib import Path

import pytest
from certificates import Authority
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from pyspark_jms.errors import TlsError
from pyspark_jms.network.certificates import present, trusting

SECRET = "s3cr3t"


@pytest.fixture
def files(tmp_path, authority):
    """Files by name, of one certificate and its key."""
    pair = authority.issue("client")
    pem, key = Path(pair.cert).read_bytes(), Path(pair.key).read_bytes()
    certificate, private = x509.load_pem_x509_certificate(pem), load_pem_private_key(key, None)
    contents = {
        "cert": pem,
        "key": key,
        "both": pem + key,
        "both, the key first": key + pem,
        "with line ends of Windows": pem.replace(b"\n", b"\r\n"),
        "with a byte order mark": b"\xef\xbb\xbf" + pem,
        "key of the older form": private.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()),
        "of the store ENCRYPTED": b"friendlyName: ENCRYPTED store\n" + key,
        "der": certificate.public_bytes(Encoding.DER),
        "der key": private.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        "pkcs12": pkcs12.serialize_key_and_certificates(b"c", private, certificate, None, NoEncryption()),
        "keystore": b"\xfe\xed\xfe\xed\0\0\0\x02",
        "empty": b" \n",
        "nonsense": b"nonsense",
        "broken": b"-----BEGIN CERTIFICATE-----\nnonsense\n-----END CERTIFICATE-----\n",
        "broken key": b"-----BEGIN PRIVATE KEY-----\nnonsense\n-----END PRIVATE KEY-----\n",
        "of one line": pem.replace(b"\n", b"\\n"),
        "of OpenSSH": private.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
        "the CA first": Path(authority.cert).read_bytes() + pem,
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
    return lambda name: str(tmp_path / name)


def test_forms_that_openssl_reads(files, authority):
    for name in ("both", "both, the key first"):
        present(trusting(authority.cert), files(name), None, None)
    for cert, key in itertools.product(
        ("cert", "with line ends of Windows", "with a byte order mark"),
        ("key", "key of the older form", "of the store ENCRYPTED"),
    ):
        present(trusting(authority.cert), files(cert), files(key), None)
    sealed = authority.issue("sealed", password=SECRET.encode())
    present(trusting(authority.cert), sealed.cert, sealed.key, lambda: SECRET)


@pytest.mark.parametrize(
    ("cert", "key", "fact"),
    [
        ("none", "key", "sslCertFile {cert} cannot be read: No such file"),
        ("cert", "none", "sslKeyFile {key} cannot be read: No such file"),
        (".", "key", "sslCertFile {cert} cannot be read: Is a directory"),
        ("empty", "key", "sslCertFile {cert} is empty"),
        ("nonsense", "key", "sslCertFile {cert} is not a PEM file"),
        ("der", "key", "sslCertFile {cert} is DER or PKCS#12, not PEM"),
        ("pkcs12", None, "sslCertFile {cert} is DER or PKCS#12, not PEM"),
        ("keystore", None, "sslCertFile {cert} is a Java keystore"),
        ("cert", "der key", "sslKeyFile {key} is DER or PKCS#12, not PEM"),
        ("key", "key", "sslCertFile {cert} has no certificate"),
        ("cert", "cert", "sslKeyFile {key} has no private key"),
        ("cert", None, "sslCertFile {cert} has no private key"),
        ("broken", "key", "sslCertFile {cert} cannot be used: OpenSSL cannot decode its content."),
        ("cert", "broken key", "sslKeyFile {key} cannot be used: OpenSSL cannot decode its content."),
        ("of one line", "key", "sslCertFile {cert} is not a PEM file"),
        ("cert", "of OpenSSH", "sslKeyFile {key} is a key of OpenSSH"),
        ("the CA first", "key", "is not the key of the first certificate in sslCertFile {cert}"),
        ("a\0b", "key", "cannot be read: embedded null byte"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_option_and_the_cause(files, cert, key, fact):
    paths = {"cert": files(cert), "key": key and files(key)}
    with pytest.raises(TlsError) as error:
        present(trusting(None), paths["cert"], paths["key"], None)
    assert fact.format(**paths) in error.value.fact
    assert error.value.remedy


def test_a_ca_file_that_cannot_be_used(files):
    facts = {"none": "cannot be read", "der": "not PEM", "key": "has no certificate", "broken": "cannot be used"}
    for name, fact in facts.items():
        with pytest.raises(TlsError, match=rf"sslCaFile {files(name)} .*{fact}"):
            trusting(files(name))


def test_a_ca_file_without_a_valid_certificate_is_refused_before_anything_connects(authority, tmp_path):
    old = Authority(tmp_path, "old", expired=True).cert
    with pytest.raises(TlsError, match=rf"sslCaFile {old} has expired: it was valid until \d{{4}}-.* UTC. Renew it"):
        trusting(old)
    both = tmp_path / "both"
    both.write_bytes(Path(old).read_bytes() + Path(authority.cert).read_bytes())
    trusting(str(both))


def test_a_key_and_a_certificate_that_do_not_belong_together(authority):
    cert, other = authority.issue("client").cert, authority.issue("other").key
    with pytest.raises(TlsError, match=f"{other} is not the key of the first certificate in sslCertFile {cert}"):
        present(trusting(None), cert, other, None)


def test_an_encrypted_key_without_its_password_asks_nobody(authority):
    pair = authority.issue("sealed", password=b"right")
    for password, fact in ((None, "there is no sslKeyPassword"), (lambda: SECRET, "does not open the private key in")):
        with pytest.raises(TlsError, match=fact) as error:
            present(trusting(None), pair.cert, pair.key, password)
        assert SECRET not in str(error.value)


def test_a_certificate_that_is_not_valid_now_is_refused_before_anything_connects(authority):
    pair = authority.issue("old", expired=True)
    with pytest.raises(TlsError, match=rf"{pair.cert} has expired: it was valid until \d{{4}}-.* UTC. Renew it"):
        present(trusting(None), pair.cert, pair.key, None)
    sealed = authority.issue("sealed", password=SECRET.encode(), expired=True)
    with pytest.raises(TlsError, match="has expired"):
        present(trusting(None), sealed.cert, sealed.key, lambda: SECRET)
