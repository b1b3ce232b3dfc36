"""A child of test_fork.py: forks again and again while threads decode images.

    python tests/decoding_forks.py COUNT RECORDS

What a fork asks of other threads is asked while these call, return and collect garbage. Says 'fine'
in the end.
"""

from __future__ import annotations

import faulthandler
import os
import sys
from pathlib import Path

import numpy as np

import gnomon as mx


def main(count: int, records: Path) -> None:
    image = np.random.default_rng(0).integers(0, 255, (40, 48, 3), np.uint8)
    writer = mx.recordio.MXRecordIO(str(records), "w")
    for k in range(64):
        writer.write(mx.recordio.pack_img(mx.recordio.IRHeader(0, float(k), k, 0), image))
    writer.close()
    kept: list[mx.io.DataIter] = []  # as cycles do, some stay for a while
    for k in range(count):
        batches = mx.io.ImageRecordIter(
            path_imgrec=str(records),
            data_shape=(3, 32, 32),
            batch_size=2,
            rand_crop=True,
            shuffle=True,
            preprocess_threads=4,
        )
        next(batches)
        child = os.fork()
        if child == 0:
            os._exit(0)
        next(batches)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        if k % 7 == 0:
            kept = [*kept[-8:], batches]
    print("fine")


if __name__ == "__main__":
    faulthandler.enable()
    main(int(sys.argv[1]), Path(sys.argv[2]))
