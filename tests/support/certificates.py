"""A private authority and its certificates as PEM files, with EC keys, which take a millisecond to generate."""

import datetime as dt
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    cert: str
    key: str


class Authority:
    """``cert``: the authority's certificate, which a client or a broker trusts."""

    def __init__(self, folder, name, *, expired=False):
        self._folder, self._name = folder, name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.cert = self._write(f"{name}.pem", self._signed(name, self._key, [], authority=True, expired=expired))

    def issue(self, name, *, hosts=(), password=None, expired=False):
        key = ec.generate_private_key(ec.SECP256R1())
        sealed = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, sealed)
        cert = self._signed(name, key, hosts, authority=False, expired=expired)
        return Pair(self._write(f"{name}.pem", cert), self._write(f"{name}.key", pem))

    def _write(self, file, data):
        (self._folder / file).write_bytes(data)
        return str(self._folder / file)

    def _signed(self, name, key, hosts, *, authority, expired=False):
        now = dt.datetime.now(dt.UTC) - dt.timedelta(days=2 if expired else 0)
        usage = dict.fromkeys(
            ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only",
             "decipher_only", "crl_sign"), False,
        )  # fmt: skip
        builder = (
            x509.CertificateBuilder()
            .subject_name(_named(name))
            .issuer_name(_named(self._name))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=authority, **usage), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _named(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(name):
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
