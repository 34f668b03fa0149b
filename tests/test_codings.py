"""Codings are undone within a bound, and told from a header that was left behind."""

import gzip
import zlib

import pytest

from memmock import codings
from memmock.codings import Undone, is_encoded, undone

TEXT = b'{"a": 1}'
GZIP = gzip.compress(TEXT, mtime=0)
ZLIB = zlib.compress(TEXT)
RAW = zlib.compress(TEXT, wbits=-15)


@pytest.mark.parametrize(
    ("header", "body", "expected"),
    [
        ("gzip", GZIP, Undone(TEXT, "")),
        ("X-GZip", GZIP + GZIP + bytes(8), Undone(TEXT + TEXT, "")),
        ("deflate", ZLIB, Undone(TEXT, "")),
        ("deflate", RAW, Undone(TEXT, "")),
        ("gzip, , identity", GZIP, Undone(TEXT, "")),
        ("gzip, deflate", zlib.compress(GZIP), Undone(TEXT, "")),
        ("gzip", b"", Undone(b"", "")),
        ("", TEXT, Undone(TEXT, "")),
        ("gzip, BR", GZIP, Undone(GZIP, "gzip, br")),
        ("zstd, gzip", GZIP, Undone(TEXT, "zstd")),
        ("gzip, deflate", ZLIB, Undone(TEXT, "gzip", "but broken")),
        ("gzip", GZIP[:-5], Undone(GZIP[:-5], "gzip", "but cut short")),
        ("deflate", RAW[:-2], Undone(RAW[:-2], "deflate", "but cut short")),
    ],
    ids=range(13),
)
def test_codings_are_undone_as_far_as_they_can_be(header, body, expected):
    assert undone(body, header) == expected


@pytest.mark.parametrize("size", [1000, 1001])
def test_body_is_unpacked_up_to_the_bound(size, monkeypatch):
    monkeypatch.setattr(codings, "MOST_BYTES", 1000)
    packed = gzip.compress(bytes(500)) + gzip.compress(bytes(size - 500))
    large = Undone(packed, "gzip", "holds more than 0 MiB")
    assert undone(packed, "gzip") == (Undone(bytes(1000), "") if size == 1000 else large)


@pytest.mark.parametrize(
    ("header", "body", "encoded"),
    [
        ("GZIP", GZIP[:-5], True),
        ("gzip", TEXT, False),
        ("deflate", ZLIB[:-5], True),
        ("deflate", RAW, True),
        ("deflate", zlib.compress(bytes(2**22), wbits=-15), True),
        ("deflate", TEXT, False),
        ("deflate", b"", False),
        ("br", b"\x0b\x02\x80{}\x03", True),
        ("br", TEXT, False),
        ("identity", b"\xff", False),
        ("", b"\xff", False),
        ("gzip, identity", GZIP, True),
    ],
    ids=range(12),
)
def test_packed_body_is_told_from_one_that_was_unpacked(header, body, encoded):
    assert is_encoded(body, header) is encoded
