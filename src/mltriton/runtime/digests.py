"""Digests of bytes, by which files and cache entries are named.

Level: runtime. `hashlib` loads OpenSSL first, a tenth of the time of importing this package; blake2b is Python's own,
and as fast.
"""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["blake2b", "digest_of"]


def digest_of(data: bytes) -> str:
    """64 hexadecimal digits."""
    return blake2b(data, digest_size=32).hexdigest()
