"""The digits in the package: every record, its frame and its place in the index."""

import struct
from importlib.resources import files

import numpy as np

DATA = files("gnomon") / "data"
FRAME = struct.Struct("<II")
HEADER = struct.Struct("<IfQQ")


def records() -> list[tuple[int, bytes]]:
    """Offset and payload of each record, read without gnomon."""
    data, at, found = (DATA / "digits.rec").read_bytes(), 0, []
    while at < len(data):
        magic, length = FRAME.unpack_from(data, at)
        assert magic == 0xCED7230A
        found.append((at, data[at + FRAME.size : at + FRAME.size + length]))
        at += FRAME.size + length + -length % 4
    assert at == len(data)
    return found


def test_records_are_the_digits():
    payloads = [payload for _, payload in records()]
    headers = [HEADER.unpack_from(p) for p in payloads]
    pictures = np.array([list(p[HEADER.size :]) for p in payloads])
    assert pictures.shape == (1797, 64)
    assert [(flag, number, zero) for flag, _, number, zero in headers] == [
        (0, n, 0) for n in range(1797)
    ]
    labels = np.array([label for _, label, _, _ in headers]).astype(int)
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (pictures.min(), pictures.max(), pictures.sum()) == (0, 16, 561718)
    assert pictures[0].reshape(8, 8)[2].tolist() == [0, 3, 15, 2, 0, 11, 8, 0]


def test_index_finds_every_record():
    rows = [line.split("\t") for line in (DATA / "digits.idx").read_text().splitlines()]
    assert [(int(k), int(at)) for k, at in rows] == [(n, at) for n, (at, _) in enumerate(records())]


def test_licence_travels_with_the_data():
    text = (DATA / "DIGITS-LICENCE.md").read_text()
    for part in ("Alpaydin", "Kaynak", "UCI", "CC BY 4.0", "10.24432/C50P49"):
        assert part in text
