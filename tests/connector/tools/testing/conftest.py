"""A raw STOMP client, so that the tests of the brokers do not depend on the connector."""

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
from dataclasses import dataclass

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


class RawStomp:
    def __init__(self, link):
        self.link = link
        self.buffer = b""

    def ask(self, frame):
        """Send the frame and a NUL, and return the broker's answer; skip messages before it."""
        self.link.sendall(frame.encode() + b"\0")
        return self.next_frame("CONNECTED", "RECEIPT", "ERROR")

    def next_frame(self, *commands):
        while True:
            frame = self._frame()
            if frame.startswith(("END OF STREAM", *commands)):
                return frame

    def _frame(self):
        while b"\0" not in self.buffer:
            data = self.link.recv(65536)
            if not data:
                return "END OF STREAM"
            self.buffer += data
        frame, _, self.buffer = self.buffer.partition(b"\0")
        return frame.decode().lstrip()

    def send(self, queue, text):
        head = f"SEND\ndestination:{queue}\ndestination-type:ANYCAST\npersistent:true\nreceipt:r\n\n"
        return self.ask(head + text)

    def subscribe(self, queue):
        """Subscribe. The receipt and the messages arrive in any order at ``next_frame``."""
        head = f"SUBSCRIBE\nid:1\ndestination:{queue}\nsubscription-type:ANYCAST\nack:client-individual\n"
        self.link.sendall(f"{head}receipt:s\n\n\0".encode())


@pytest.fixture
def connect():
    """``connect(broker, user=..., context=...)``: a RawStomp and the broker's answer to CONNECT."""
    with contextlib.ExitStack() as stack:

        def connect(broker, user=None, password=None, *, port=None, context=None):
            link = stack.enter_context(socket.create_connection((broker.host, port or broker.port), timeout=10))
            if context is not None:
                link = stack.enter_context(context.wrap_socket(link, server_hostname="localhost"))
            stomp = RawStomp(link)
            login = f"login:{user or broker.user}\npasscode:{password or broker.password}"
            return stomp, stomp.ask(f"CONNECT\naccept-version:1.2\nhost:x\n{login}\n\n")

        yield connect


@dataclass(frozen=True)
class Certificates:
    """An authority, and one certificate of it for both the broker and a client."""

    authority: str
    cert: str
    key: str

    def context(self, *, client=False):
        context = ssl.create_default_context(cafile=self.authority)
        if client:
            context.load_cert_chain(self.cert, self.key)
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certificates")
    authority_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("test authority", authority_key, "test authority", authority_key, is_authority=True)
    leaf = _certificate("localhost", key, "test authority", authority_key, is_authority=False)
    pem = serialization.Encoding.PEM
    files = {
        "authority": authority.public_bytes(pem),
        "cert": leaf.public_bytes(pem),
        "key": key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()),
    }
    for name, data in files.items():
        (folder / f"{name}.pem").write_bytes(data)
    return Certificates(**{name: str(folder / f"{name}.pem") for name in files})


def _certificate(name, key, issuer, issuer_key, *, is_authority):
    now = dt.datetime.now(dt.UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )
