"""Authorities of one's own, and certificates signed by them, as PEM."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

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
        early: bool = False,
    ) -> Pair:
        """A certificate with a common name, and others for the hosts and addresses.

        ``expired``: it was valid until yesterday; ``early``: it will be tomorrow.
        """
        names: list[x509.GeneralName] = [x509.DNSName(host) for host in hosts]
        names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        key = ec.generate_private_key(ec.SECP256R1())
        end = NOW - DAY if expired else NOW + (4 * DAY if early else DAY)
        builder = _builder(_named(name), self.name, key, end)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Pair(_shown(builder.sign(self.signing, hashes.SHA256())), _private(key))

    def deputy(self, name: str) -> Authority:
        """Another one, that this one vouches for."""
        return _authority(name, self.name, self.signing)


def make_authority(name: str = "authority") -> Authority:
    """One that nobody else knows."""
    return _authority(name, _named(name), None)


def make_old_pair(name: str) -> Pair:
    """A certificate that vouches for itself, and its key, as servers of 2014 read them."""
    key = rsa.generate_private_key(65537, 2048)
    builder = _builder(_named(name), _named(name), key, NOW + DAY)
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    return Pair(_shown(builder.sign(key, hashes.SHA256())), private.decode())


def _authority(
    name: str, issuer: x509.Name, signing: ec.EllipticCurvePrivateKey | None
) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_named(name), issuer, key, NOW + DAY).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    certificate = _shown(builder.sign(signing or key, hashes.SHA256()))
    return Authority(certificate, _private(key), key, _named(name))


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey,
    end: datetime.datetime,
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
