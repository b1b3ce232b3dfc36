"""Writes warps.json with the real MXNet: a picture that ImageRecordIter moves, pixel for pixel."""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from typing import Any

HEIGHT, WIDTH = 9, 8
CASES: list[dict[str, Any]] = [
    {"rotate": 20},
    {"rotate": 45, "fill_value": 7},
    {"rotate": 33, "min_img_size": 11},
    {"min_random_scale": 0.8, "max_random_scale": 0.8},
]


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def picture() -> bytes:
    """A PNG of colours that are far from each other."""
    row = WIDTH * 3
    rows = [bytes((k * k * 37 + k * 11) % 256 for k in range(y * row, (y + 1) * row))
            for y in range(HEIGHT)]  # fmt: skip
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + r for r in rows))
    end = chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + end


def moved(mx: Any, folder: str) -> list[list[int]]:
    """The colours of the picture in each case."""
    path = str(Path(folder) / "w.rec")
    file = mx.recordio.MXRecordIO(path, "w")
    file.write(mx.recordio.pack((0, 1.0, 0, 0), picture()))
    file.close()
    found = []
    for options in CASES:
        it = mx.io.ImageRecordIter(
            path_imgrec=path, data_shape=(3, 8, 8), batch_size=1, preprocess_threads=1, **options
        )
        found.append(next(it).data[0].asnumpy().astype(int).ravel().tolist())
    return found


if __name__ == "__main__":
    import mxnet

    with tempfile.TemporaryDirectory() as place:
        numbers = moved(mxnet, place)
    where = Path(__file__).with_name("warps.json")
    where.write_text(json.dumps(numbers, separators=(",", ":")) + "\n")
    sys.stdout.write(f"{where}: {len(numbers)} cases\n")
