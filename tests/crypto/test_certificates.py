"""Certificates: what the authority issues carries a strict TLS handshake; what does not fit is refused."""

import ssl
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from hedgerow.crypto import certificates
from hedgerow.errors import KeyInvalid

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
HOSTS = ("hub.example.org", "127.0.0.1")


@cache
def federation():
    """An authority, a coordinator's certificate and a station's, with their keys; valid now."""
    authority, signing = certificates.authority("hub")
    issued = {}
    for name, hosts in (("hub", HOSTS), ("alpha", ())):
        key = certificates.tls_key()
        issued[name] = certificates.issue(authority, signing, certificates.request(name, key), name, hosts=hosts), key
    return authority, signing, issued


def context(side, holder, authority, folder, strict=True):
    """A TLS context that wants a certificate of the other end."""
    certificate, key = holder
    (folder / "c.pem").write_bytes(certificate)
    (folder / "k.pem").write_bytes(key)
    made = ssl.SSLContext(side)
    made.verify_mode = ssl.CERT_REQUIRED
    made.verify_flags |= ssl.VERIFY_X509_STRICT
    made.load_verify_locations(cadata=authority.decode())
    made.load_cert_chain(folder / "c.pem", folder / "k.pem")
    return made


def handshake(client, server, host):
    """Carry a handshake through memory, and return what each end knows of the other."""
    ways = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = client.wrap_bio(ways[0], ways[1], server_hostname=host), server.wrap_bio(ways[1], ways[0], server_side=True)
    open_ends = list(ends)
    for _ in range(10):
        for end in list(open_ends):
            try:
                end.do_handshake()
                open_ends.remove(end)
            except ssl.SSLWantReadError:
                pass
    assert not open_ends
    return [end.getpeercert(binary_form=True) for end in ends]


@pytest.mark.parametrize("host", [*HOSTS, "hub"])
def test_strict_tls_takes_both_certificates_under_every_host(host, tmp_path):
    authority, _, issued = federation()
    client = context(ssl.PROTOCOL_TLS_CLIENT, issued["alpha"], authority, tmp_path)
    server = context(ssl.PROTOCOL_TLS_SERVER, issued["hub"], authority, tmp_path)
    seen = handshake(client, server, host)
    for der, name in zip(seen, ("hub", "alpha"), strict=True):
        assert fingerprint_of(der) == certificates.fingerprint(issued[name][0])


def fingerprint_of(der):
    return x509.load_der_x509_certificate(der).fingerprint(SHA256())


def test_tls_refuses_another_host_another_authority_and_a_station_that_serves(tmp_path):
    authority, _, issued = federation()
    client = context(ssl.PROTOCOL_TLS_CLIENT, issued["alpha"], authority, tmp_path)
    server = context(ssl.PROTOCOL_TLS_SERVER, issued["hub"], authority, tmp_path)
    with pytest.raises(ssl.SSLCertVerificationError, match="ostname mismatch"):
        handshake(client, server, "elsewhere.example.org")
    with pytest.raises(ssl.SSLCertVerificationError, match="purpose"):
        handshake(client, context(ssl.PROTOCOL_TLS_SERVER, issued["alpha"], authority, tmp_path), "alpha")
    other, signing = certificates.authority("hub")
    key = certificates.tls_key()
    stranger = certificates.issue(other, signing, certificates.request("alpha", key), "alpha"), key
    with pytest.raises(ssl.SSLError):
        handshake(context(ssl.PROTOCOL_TLS_CLIENT, stranger, authority, tmp_path), server, "hub")


def test_a_certificate_names_its_holder_and_hosts():
    _, _, issued = federation()
    hub, alpha = issued["hub"][0], issued["alpha"][0]
    assert certificates.hosts_of(hub) == ("hub", *HOSTS)
    assert certificates.hosts_of(alpha) == (certificates.name_of(alpha),) == ("alpha",)
    assert x509.load_pem_x509_certificate(hub).extensions.get_extension_for_class(x509.BasicConstraints).critical


def test_a_certificate_lasts_its_days_and_no_longer_than_the_authority():
    authority, signing = certificates.authority("hub", days=1000, now=NOW)
    asked = certificates.request("alpha", certificates.tls_key())
    issued = certificates.issue(authority, signing, asked, "alpha", now=NOW)
    assert certificates.valid_until(issued) == NOW + timedelta(days=398)
    late = certificates.issue(authority, signing, asked, "alpha", now=NOW + timedelta(days=900))
    assert certificates.valid_until(late) == certificates.valid_until(authority)
    certificates.check_valid(issued, now=NOW - timedelta(minutes=50))  # clocks differ
    for moment in (NOW - timedelta(hours=2), NOW + timedelta(days=398)):
        with pytest.raises(KeyInvalid, match="'alpha' is valid from 2030-05-01"):
            certificates.check_valid(issued, now=moment)
    with pytest.raises(KeyInvalid, match="authority"):
        certificates.issue(authority, signing, asked, "alpha", now=NOW + timedelta(days=1001))


def test_what_is_issued_belongs_to_name_key_and_authority():
    authority, _, issued = federation()
    certificate, key = issued["alpha"]
    certificates.check_issued(certificate, authority, "alpha", key=key)
    with pytest.raises(KeyInvalid, match="not for 'beta'"):
        certificates.check_issued(certificate, authority, "beta")
    with pytest.raises(KeyInvalid, match="another private key"):
        certificates.check_issued(certificate, authority, "alpha", key=issued["hub"][1])
    with pytest.raises(KeyInvalid, match="not issued by"):
        certificates.check_issued(certificate, certificates.authority("hub")[0], "alpha")
    with pytest.raises(KeyInvalid, match="may not issue"):
        certificates.check_issued(certificate, issued["hub"][0], "alpha")
    with pytest.raises(KeyInvalid, match="valid from"):
        certificates.check_issued(certificate, authority, "alpha", now=datetime.now(UTC) + timedelta(days=500))


def test_a_station_cannot_ask_for_more_than_its_name():
    """A request for the coordinator's hosts, and for an authority, gives a station's certificate."""
    authority, signing, _ = federation()
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alpha")])
    )
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("hub.example.org")]), critical=False)
    asked = builder.sign(key, SHA256()).public_bytes(Encoding.PEM)
    issued = certificates.issue(authority, signing, asked, "alpha")
    assert certificates.hosts_of(issued) == ("alpha",)
    assert not x509.load_pem_x509_certificate(issued).extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def with_rsa():
    key = rsa.generate_private_key(65537, 2048)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alpha")])
    return x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, SHA256()).public_bytes(Encoding.PEM)


def with_a_signature_changed():
    der = bytearray(x509.load_pem_x509_csr(certificates.request("alpha", certificates.tls_key())).public_bytes(Encoding.DER))
    der[-1] ^= 1
    return x509.load_der_x509_csr(bytes(der)).public_bytes(Encoding.PEM)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (lambda: b"", "cannot be read"),
        (lambda: b"-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n", "cannot be read"),
        (lambda: bytes(100_000), "cannot be read"),
        (lambda: certificates.request("beta", certificates.tls_key()), "for 'beta', not for 'alpha'"),
        (with_rsa, "not on P-256"),
        (with_a_signature_changed, "not signed by its own key"),
    ],
)
def test_a_request_that_does_not_fit_gets_no_certificate(asked, why):
    authority, signing, _ = federation()
    with pytest.raises(KeyInvalid, match=why):
        certificates.issue(authority, signing, asked(), "alpha")


def test_keys_and_hosts_that_cannot_be_used_are_refused():
    authority, signing, _ = federation()
    asked = certificates.request("hub", certificates.tls_key())
    with pytest.raises(KeyInvalid, match="neither a name"):
        certificates.issue(authority, signing, asked, "hub", hosts=["höst"])
    with pytest.raises(KeyInvalid, match="private TLS key cannot be read"):
        certificates.request("hub", b"no key")
    p384 = ec.generate_private_key(ec.SECP384R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(KeyInvalid, match="not on P-256"):
        certificates.request("hub", p384)
    with pytest.raises(KeyInvalid, match="certificate cannot be read"):
        certificates.fingerprint(b"no certificate")
