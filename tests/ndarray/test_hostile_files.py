"""Array files that something has gone wrong with: an error, or arrays, and never much memory."""

from __future__ import annotations

import random
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon import dtype as dtypes
from gnomon.base import GnomonError
from gnomon.ndarray.api import serialize

GOLDEN = Path(__file__).parent.parent / "golden"
SOURCES = ("arrays.params", "sparse.params", "lenet-0001.params")
#: Numbers that headers are broken with: sizes that overflow, negative ones, other magic numbers.
NASTY = (0, 1, 2, 0x7F, 0xFF, 0x112, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xF993FAC8, 0xF993FAC9,
         0xF993FACA, 1 << 40, 1 << 62, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)  # fmt: skip


def broken(raw: bytes, rng: random.Random) -> bytes:
    """`raw` with one to three things done to it; most of them near its start, where headers are."""
    made = bytearray(raw)
    for _ in range(rng.randint(1, 3)):
        at = min(int(rng.expovariate(1 / 60)), len(made)) if rng.random() < 0.7 else 0
        at = at or rng.randrange(len(made) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            del made[at:]
        elif kind == 1:
            made[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 2:
            made[at : at + 4] = struct.pack("<I", rng.choice(NASTY) & 0xFFFFFFFF)
        elif kind == 3:
            made[at : at + 8] = struct.pack("<Q", rng.choice(NASTY))
        elif kind == 4:
            made[at:at] = rng.randbytes(rng.randint(1, 16))
        else:
            del made[at : at + rng.randint(1, 16)]
        made = made or bytearray(b"\0")
    return bytes(made)


def check(raw: bytes) -> bool:
    """Read `raw`; whether it still was a file. What was allocated must be in proportion to it."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    complaint = None
    try:
        arrays, names, _ = serialize.read(raw)
    except GnomonError as error:
        complaint, arrays, names = str(error), [], []
    peak = tracemalloc.get_traced_memory()[1] - before
    assert peak < 40 * len(raw) + 200_000, f"{peak} bytes for a file of {len(raw)}"
    assert complaint is None or "offset" in complaint
    assert not names or len(names) == len(arrays)
    return complaint is None


def fuzz(source: str, seed: int, cases: int) -> int:
    raw, rng = (GOLDEN / source).read_bytes()[:20_000], random.Random(seed)
    assert dtypes.of("bfloat16").numpy  # loads ml_dtypes: 0.8 MB once, which no file takes
    tracemalloc.start()
    try:
        return sum(check(broken(raw, rng)) for _ in range(cases))
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("source", SOURCES)
def test_mutated_files(source):
    read = fuzz(source, 1, 1500)
    assert read < 1500  # something was broken


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("source", SOURCES)
def test_many_mutated_files(source):
    fuzz(source, 2, 100_000)


@pytest.mark.parametrize("seed", range(3))
def test_garbage(seed):
    rng = random.Random(seed)
    tracemalloc.start()
    try:
        for size in (0, 1, 7, 8, 15, 16, 24, 100, 5000):
            assert not check(rng.randbytes(size))
            assert not check(struct.pack("<QQ", 0x112, 0) + b"\xff" * size)
    finally:
        tracemalloc.stop()


def test_load_of_a_broken_file_names_it_and_keeps_nothing_open(tmp_path):
    path = tmp_path / "weights.params"
    mx.nd.save(str(path), {"w": mx.nd.ones((3, 4))})
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    with pytest.raises(GnomonError, match=r"weights\.params"):
        mx.nd.load(str(path))
    path.write_bytes(whole)
    assert (mx.nd.load(str(path))["w"].asnumpy() == np.ones((3, 4))).all()
