"""Write the 1,797 handwritten digits that gnomon carries as a RecordIO file with its index.

Needs scikit-learn, whose wheel carries the digits:

    python -m pip install scikit-learn && python tools/make_digits.py

A record's payload is MXNet's IRHeader (flag 0, label, number of the record, 0) and the 64 bytes of
an 8x8 picture, row by row, 0 for paper to 16 for ink. The index has a line `key, tab, offset` each.
"""

import struct
from collections.abc import Iterable
from pathlib import Path

from sklearn.datasets import load_digits

MAGIC = 0xCED7230A
FOLDER = Path(__file__).parent.parent / "gnomon" / "data"


def record(payload: bytes) -> bytes:
    """`payload` framed as one whole RecordIO record, padded to 4 bytes."""
    return struct.pack("<II", MAGIC, len(payload)) + payload + bytes(-len(payload) % 4)


def write(pictures: Iterable[bytes], labels: Iterable[int], folder: Path) -> None:
    """Write `digits.rec` and `digits.idx` into `folder`."""
    data, index = bytearray(), []
    for number, (picture, label) in enumerate(zip(pictures, labels, strict=True)):
        index.append(f"{number}\t{len(data)}\n")
        data += record(struct.pack("<IfQQ", 0, label, number, 0) + picture)
    (folder / "digits.rec").write_bytes(data)
    (folder / "digits.idx").write_text("".join(index), newline="\n")


if __name__ == "__main__":
    digits = load_digits()
    write([row.tobytes() for row in digits.data.astype("uint8")], digits.target, FOLDER)
