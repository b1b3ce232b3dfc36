"""Pack a folder of images into a record file, as `gnomon im2rec` does, and read it in batches.

    python examples/packing.py --images 200

The folder holds digits as PNG files, in a folder for each digit, which becomes the label.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
from digits import divided

import gnomon as mx
from gnomon.cli import main as gnomon


def write_images(folder: Path, count: int) -> None:
    """Write digits as PNG files, `folder/DIGIT/NUMBER.png`, of 16 by 16 pixels."""
    (pictures, labels), _ = divided()
    for k in range(count):
        grey = np.round(pictures[k, 0] / pictures.max() * 255).astype(np.uint8)
        place = folder / f"{int(labels[k])}"
        place.mkdir(parents=True, exist_ok=True)
        packed = mx.recordio.pack_img((0, 0.0, k, 0), grey.repeat(2, 0).repeat(2, 1), 9, ".png")
        (place / f"{k}.png").write_bytes(mx.recordio.unpack(packed)[1])


def main() -> None:
    """Write, list, pack and read; print how many images came back with their label."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--images", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        root, prefix = f"{place}/images", f"{place}/digits"
        write_images(Path(root), options.images)
        gnomon(["im2rec", "--list", "--recursive", prefix, root])
        gnomon(["im2rec", "--encoding", ".png", "--quality", "9", prefix, root])
        it = mx.io.ImageRecordIter(
            path_imgrec=f"{prefix}.rec", data_shape=(1, 16, 16), batch_size=32
        )
        kept = Path(f"{prefix}.lst").read_text().splitlines()
        wanted = {int(line.split("\t")[0]): int(line.split("\t")[2][0]) for line in kept}
        right = 0
        with mx.recordio.MXIndexedRecordIO(f"{prefix}.idx", f"{prefix}.rec", "r") as file:
            for key in file.keys:
                header, image = mx.recordio.unpack_img(file.read_idx(key))
                right += int(header.label) == wanted[key] and image.shape[:2] == (16, 16)
        print("batches", sum(1 for _ in it), "right", right / options.images)


if __name__ == "__main__":
    main()
