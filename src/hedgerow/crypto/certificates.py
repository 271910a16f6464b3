"""Certificates for mutual TLS: a small authority, requests that stations make, and what is checked of a certificate.

    authority   certificate, key = authority("hub")                          kept by the coordinator
    station     key = tls_key(); asked = request("alpha", key)               the key never leaves the station
    authority   issued = issue(certificate, key, asked, "alpha")             CN and SAN are the station's name

Everything is PEM bytes, and all work is done by `cryptography.x509` with keys on the curve P-256, which every TLS library
takes. A certificate says who may connect. What a connected station may say, and that it was the station who said it, is
decided by the signatures of letters, not here.

Source   : RFC 5280; CA/Browser Forum on lifetimes (398 days).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NoReturn

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hedgerow.errors import KeyInvalid

AUTHORITY_DAYS = 3650
DAYS = 398
SKEW = timedelta(hours=1)
"""A certificate is valid from so long before it was issued: clocks differ."""

LONGEST_PEM = 1 << 16
_HASH = SHA256()


def tls_key() -> bytes:
    """Return a new private key on P-256, PKCS 8 without a passphrase."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def authority(name: str, *, days: int = AUTHORITY_DAYS, now: datetime | None = None) -> tuple[bytes, bytes]:
    """Return certificate and key of a new authority, which signs for stations itself and for no other authority."""
    pem = tls_key()
    key = _private(pem)
    subject = _named(f"{name[:50]} authority")
    moment = now or datetime.now(UTC)
    builder = _begun(subject, subject, key.public_key(), moment, moment + timedelta(days=days))
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(authority=True), critical=True)
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
    return builder.sign(key, _HASH).public_bytes(Encoding.PEM), pem


def request(name: str, key: bytes) -> bytes:
    """Return a signing request of a station for its key: it shows that whoever asks has the private half."""
    builder = x509.CertificateSigningRequestBuilder().subject_name(_named(name))
    return builder.sign(_private(key), _HASH).public_bytes(Encoding.PEM)


def issue(
    certificate: bytes,
    key: bytes,
    asked: bytes,
    name: str,
    *,
    hosts: Sequence[str] = (),
    days: int = DAYS,
    now: datetime | None = None,
) -> bytes:
    """Return a certificate for the key of a request.

    Parameters
    ----------
    certificate, key : bytes
        Of the authority.
    asked : bytes
        The request. Of its content only name and key are used; extensions that it asks for are not given.
    name : str
        Whom the certificate is for: CN, and the first SAN.
    hosts : sequence of str
        Names and addresses under which a coordinator is reached; further SANs. None for a station, which dials out.
    days : int
        Days of validity, cut where the authority's own certificate ends.

    Raises
    ------
    KeyInvalid (HR-244)
        The request is malformed, is not signed by its key, names somebody else, or its key is not on P-256; the authority
        has expired; a host is neither a name nor an address.
    """
    wanted = _request(asked, name)
    issuer, signing = _certificate(certificate), _private(key)
    moment = now or datetime.now(UTC)
    check_valid(certificate, now=moment)
    names = [_san(host) for host in dict.fromkeys([name, *hosts])]
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
    end = min(moment + timedelta(days=days), issuer.not_valid_after_utc)
    builder = _begun(_named(name), issuer.subject, wanted, moment, end)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(_usage(authority=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    builder = builder.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
    return builder.sign(signing, _HASH).public_bytes(Encoding.PEM)


def fingerprint(certificate: bytes) -> bytes:
    """Return the 32 bytes of SHA-256 of a certificate's DER: what a roster pins and a rail sees."""
    return _certificate(certificate).fingerprint(_HASH)


def name_of(certificate: bytes) -> str:
    """Return the common name of a certificate."""
    return _common_name(_certificate(certificate).subject)


def hosts_of(certificate: bytes) -> tuple[str, ...]:
    """Return every name and address of a certificate, its holder's name first."""
    names = _certificate(certificate).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return tuple(str(name.value) for name in names)


def valid_until(certificate: bytes) -> datetime:
    """Return the moment from which a certificate is no longer valid, in UTC."""
    return _certificate(certificate).not_valid_after_utc


def check_valid(certificate: bytes, *, now: datetime | None = None) -> None:
    """Return if a certificate is valid now; raise KeyInvalid (HR-244) if it is not yet, or has expired."""
    found, moment = _certificate(certificate), now or datetime.now(UTC)
    if not found.not_valid_before_utc <= moment < found.not_valid_after_utc:
        raise KeyInvalid(
            f"the certificate of {_common_name(found.subject)!r} is valid from {found.not_valid_before_utc:%Y-%m-%d %H:%M} to "
            f"{found.not_valid_after_utc:%Y-%m-%d %H:%M}, and it is {moment:%Y-%m-%d %H:%M} (UTC).",
            remedy="Renew it: hedgerow keys rotate. If the date is wrong, set the clock.",
        )


def check_issued(
    certificate: bytes, authority: bytes, name: str, *, key: bytes | None = None, now: datetime | None = None
) -> None:
    """Return if a certificate is what a holder needs.

    Parameters
    ----------
    certificate : bytes
    authority : bytes
        The certificate of the authority that must have issued it.
    name : str
        Whom it must be for.
    key : bytes, optional
        The private key that must belong to it.
    now : datetime, optional
        The moment at which both must be valid.

    Raises
    ------
    KeyInvalid (HR-244)
        One of these is not so.
    """
    found, issuer = _certificate(certificate), _certificate(authority)
    check_valid(authority, now=now)
    check_valid(certificate, now=now)
    if not _is_authority(issuer):
        _refuse(f"the certificate of {_common_name(issuer.subject)!r} may not issue certificates", "Use the authority's.")
    try:
        found.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError):
        _refuse(f"the certificate of {_common_name(found.subject)!r} was not issued by the authority", "Ask for a new one.")
    if _common_name(found.subject) != name:
        _refuse(f"the certificate is for {_common_name(found.subject)!r}, not for {name!r}", "Ask for one in your own name.")
    if key is not None and _raw(found.public_key()) != _raw(_private(key).public_key()):
        _refuse(f"the certificate of {name!r} belongs to another private key", "Ask for one for the key of this folder.")


def check_request(asked: bytes, name: str) -> None:
    """Return if a signing request is sound and in this name; raise KeyInvalid (HR-244) otherwise."""
    _request(asked, name)


def _request(asked: bytes, name: str) -> ec.EllipticCurvePublicKey:
    """Return the public key of a sound request."""
    try:
        found = x509.load_pem_x509_csr(_short(asked))
        sound, holder, key = found.is_signature_valid, _common_name(found.subject), found.public_key()
    except Exception:  # whatever a parser makes of hostile bytes, they are refused
        _refuse(f"the signing request of {name!r} cannot be read", "Ask for a new one.")
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        _refuse(f"the signing request of {name!r} is for a key that is not on P-256", "Make it with hedgerow keys.")
    if not sound:
        _refuse(f"the signing request of {name!r} is not signed by its own key", "Ask for a new one.")
    if holder != name:
        _refuse(f"the signing request is for {holder!r}, not for {name!r}", "Ask for one in this name.")
    return key


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    """A certificate with what every one has."""
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(start - SKEW).not_valid_after(end)
    return builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)


def _usage(authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=authority,
        crl_sign=authority,
        encipher_only=False,
        decipher_only=False,
    )


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _common_name(subject: x509.Name) -> str:
    return "".join(str(attribute.value) for attribute in subject.get_attributes_for_oid(NameOID.COMMON_NAME))


def _san(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        _refuse(
            f"the host {host!r} is neither a name in ASCII nor an address", "Pass --host hub.example.org or --host 10.0.0.7."
        )


def _private(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = load_pem_private_key(_short(pem), None)
    except Exception:
        _refuse("a private TLS key cannot be read", "It is PEM, without a passphrase; see hedgerow keys init.")
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        _refuse("a private TLS key is not on P-256", "Make it with hedgerow keys init.")
    return key


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(_short(pem))
    except Exception:
        _refuse("a certificate cannot be read", "It is PEM; see hedgerow keys enrol.")


def _short(pem: bytes) -> bytes:
    if len(pem) > LONGEST_PEM:
        raise ValueError("longer than any certificate")
    return pem


def _raw(key: object) -> bytes:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        return b""
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def _refuse(what: str, remedy: str) -> NoReturn:
    raise KeyInvalid(f"{what}.", remedy=remedy, asked=False)
