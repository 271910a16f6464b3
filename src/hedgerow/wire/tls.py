"""What a rail with mutual TLS needs: whom to trust, who this end is, and its private key."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Tls:
    """The TLS side of one end of a rail.

    Parameters
    ----------
    authority : bytes
        PEM. The certificate of the federation's authority: an end whose certificate it did not issue is not connected to.
    certificate : bytes
        PEM. This end's certificate; CN and the first SAN are its name.
    key : bytes
        PEM. The private key of `certificate`. It is in no text of this object.
    """

    authority: bytes
    certificate: bytes
    key: bytes = field(repr=False)
