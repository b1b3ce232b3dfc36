"""What the networks of Gluon's zoo give in a step of training, and the files they are saved in."""

from __future__ import annotations

import json
import tempfile
import warnings
from pathlib import Path

import gluon_cases
import mxnet as mx
import numpy as np
import vision


def make(folder: Path) -> None:
    """Write `vision.npz`, results in double precision, and `vision.json`.

    The last has, for every network, how far MXNet is from that in single precision, and digests of
    files. In half precision MXNet has no products on processors.
    """
    warnings.simplefilter("ignore")
    arrays, told = {}, {}
    for name in gluon_cases.NETWORKS:
        exact = vision.step(mx, name, "float64")
        single = vision.deviation(vision.step(mx, name), exact)
        with tempfile.TemporaryDirectory() as other:
            told[name] = {"single": single, "files": vision.saved(mx, name, Path(other))}
        arrays.update((f"{name}/{key}", x.astype("f")) for key, x in exact.items())
        print(f"{name}: single precision deviates by {single:.1e}")
    np.savez_compressed(folder / "vision.npz", **arrays)
    (folder / "vision.json").write_text(json.dumps(told, indent=1) + "\n")
