"""Values of JSON as bytes, in the form of Python's byte code: loading `json` takes longer than the rest of a cached
launch's reading.

Level: runtime. Guarantees: what JSON cannot say is an error when it is packed; what comes back is as JSON would give
it. Bytes that something else has written must not get here: where they are kept a checksum comes first.
"""

from __future__ import annotations

import marshal
from typing import Any

_VERSION = 2  # without references between values: equal values give equal bytes, whatever Python reads them


def packed(value: Any) -> bytes:
    """A value that is representable in JSON, as bytes."""
    import json

    return marshal.dumps(json.loads(json.dumps(value)), _VERSION)


def unpacked(data: bytes | memoryview) -> Any:
    """The value of what `packed` gave. Raises `ValueError` for other bytes, as far as they can be told."""
    try:
        return marshal.loads(data)
    except (EOFError, TypeError) as error:
        raise ValueError(str(error)) from None
