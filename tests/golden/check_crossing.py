"""Does a checkpoint that gnomon saved predict the same in the real MXNet? Run by hand.

    gnomon demo            # saves a checkpoint and says where: a prefix and a number
    MXNET_SUBGRAPH_BACKEND=NONE oracle/bin/python tests/golden/check_crossing.py PREFIX NUMBER \
        --gnomon path/to/the/python/with/gnomon

The interpreter that runs this has MXNet; the one after `--gnomon` has gnomon.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent.parent
BATCH = 33


def pictures(mx: Any) -> np.ndarray:
    """The digits of the package, (n, 1, 8, 8) from 0 to 1."""
    file, found = mx.recordio.MXRecordIO(str(ROOT / "gnomon/data/digits.rec"), "r"), []
    while record := file.read():
        _, content = mx.recordio.unpack(record)
        found.append(np.frombuffer(content, np.uint8, 64).reshape(1, 8, 8))
    return np.float32(found) / 16


def predict(package: str, prefix: str, number: int) -> np.ndarray:
    """What the checkpoint says of all digits, by the library called `package`."""
    mx = importlib.import_module(package)
    symbol, args, aux = mx.model.load_checkpoint(prefix, number)
    batches = mx.io.NDArrayIter(pictures(mx), batch_size=BATCH)
    module = mx.mod.Module(symbol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # labels are not needed to predict
        module.bind(batches.provide_data, for_training=False)
    module.set_params(args, aux)
    return module.predict(batches).asnumpy()


def by_gnomon(python: str, prefix: str, number: int) -> np.ndarray:
    """The same in another interpreter."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/predictions.npy"
        command = [python, __file__, prefix, str(number), "--save", out]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, env=environment)
        return np.load(out)


def main() -> None:
    """Compare, or with `--save` only predict by gnomon."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("prefix")
    parser.add_argument("number", type=int)
    parser.add_argument("--gnomon", metavar="PYTHON", help="interpreter that has gnomon")
    parser.add_argument("--save", metavar="FILE", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.save:
        np.save(asked.save, predict("gnomon", asked.prefix, asked.number))
        return
    theirs = predict("mxnet", asked.prefix, asked.number)
    ours = by_gnomon(asked.gnomon or sys.executable, asked.prefix, asked.number)
    np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-6)
    print(f"{len(ours)} predictions agree; largest difference {abs(theirs - ours).max():.2e}")


if __name__ == "__main__":
    main()
