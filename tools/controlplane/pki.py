"""Certificates of one control plane: an authority, what it signs, and the key of service accounts."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

__all__ = ["Authority", "Pair", "private_key", "write_private"]

_DAYS = 30


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> None:
        """Write `<name>.crt` and `<name>.key`, readable by the owner only."""
        write_private(folder / f"{name}.crt", self.certificate)
        write_private(folder / f"{name}.key", self.key)


class Authority:
    """A certificate authority that signs for users, and for servers on the loopback interface."""

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)
        key = serialization.load_pem_private_key(pair.key, None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        self._key = key

    @classmethod
    def new(cls) -> Authority:
        """An authority with a key of its own."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name("ome-controlplane", ())
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        builder = (
            _builder(name, name, key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
        )
        return cls(Pair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key)))

    @classmethod
    def read(cls, folder: Path) -> Authority:
        """The authority that `Pair.write` wrote as `ca`."""
        return cls(Pair((folder / "ca.crt").read_bytes(), (folder / "ca.key").read_bytes()))

    def user(self, name: str, groups: Sequence[str] = ()) -> Pair:
        """A client certificate: Kubernetes reads the user from its CN and the groups from its O."""
        return self._issue(_name(name, groups), ())

    def server(self, *hosts: str) -> Pair:
        """A certificate for `localhost`, 127.0.0.1 and further names; it also serves as a client's."""
        names = ["localhost", *hosts]
        loopback = x509.IPAddress(ipaddress.IPv4Address("127.0.0.1"))
        return self._issue(
            _name(names[-1], ()), [*(x509.DNSName(host) for host in names), loopback]
        )

    def _issue(self, subject: x509.Name, hosts: Sequence[x509.GeneralName]) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if hosts:
            usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = _builder(subject, self._certificate.subject, key)
        builder = builder.add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )
        builder = builder.add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
            critical=False,
        )
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), _key_pem(key))


def private_key() -> bytes:
    """A new key, such as the one that signs the tokens of service accounts."""
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def write_private(path: Path, content: bytes) -> None:
    """Write a file that nobody else can read, not even for a moment."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)


def _name(common: str, organizations: Sequence[str]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=_DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # Kubernetes reads the keys of service accounts in this form only.
    form, plain = serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, form, plain)
