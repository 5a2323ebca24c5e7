"""Authorities of one's own, and certificates signed by them, as PEM."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: str
    key: str


@dataclass(frozen=True)
class Authority(Pair):
    """One that can sign others."""

    signing: ec.EllipticCurvePrivateKey
    name: x509.Name

    def sign(
        self,
        name: str,
        *,
        hosts: tuple[str, ...] = (),
        addresses: tuple[str, ...] = (),
        expired: bool = False,
    ) -> Pair:
        """A certificate with a common name, and others for the hosts and addresses."""
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_named(name), self.name, key, NOW - (DAY if expired else -DAY))
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Pair(_shown(builder.sign(self.signing, hashes.SHA256())), _private(key))


def make_authority(name: str = "authority") -> Authority:
    """One that nobody else knows."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_named(name), _named(name), key, NOW + DAY).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    certificate = _shown(builder.sign(key, hashes.SHA256()))
    return Authority(certificate, _private(key), key, _named(name))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, end: datetime.datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - 3 * DAY)
        .not_valid_after(end)
    )


def _shown(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _private(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
