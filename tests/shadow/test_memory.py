"""No temporaries: neither the allocator nor the system sees memory of the size of the data."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# names of statements over x and y of 8M floats each, into z: 32 MB each
STATEMENTS = {
    "update": "z[:] = -0.1 * (x + 0.5 * z)",
    "chain": "z += fn.tanh(x) * y - fn.exp(-x) / (y + 2.0)",
    "chainers": "z[:] = shadow.flip(x, 1) + shadow.pad(y[1:-1], 1, 0) * shadow.transpose(square)",
    "conversion": "z[:] = shadow.tcast('float32', shadow.tcast('int32', x) * 2)",
    "rows": "z[:] = x - shadow.broadcast_to(shadow.reduce_keepdim('max', x, 1), x.shape)",
    "columns": "z[:] = x - shadow.broadcast_to(shadow.reduce_keepdim('sum', x, 0), x.shape)",
    "windows": "z[1:-1] = shadow.pool('max', x, (3, 1), (1, 1))",
    "shift": "z[1:] = z[:-1] * 0.5 + x[1:]",
    "softmax": "shadow.softmax(z, x * 2.0)",
}

SCRIPT = """
import resource, sys
import numpy as np
from gnomon import shadow
from gnomon.runtime import pool
from gnomon.shadow import Tensor, fn

def data(n):
    x, y, z = (Tensor(np.full((n, n), v, np.float32)) for v in (0.25, 0.5, 1.0))
    return x, y, z, x

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10

statement = compile(sys.argv[1], "<statement>", "exec")
for n in (64, 2828):
    x, y, z, square = data(n)
    if n > 64:  # what the code needs has been loaded
        before, allocated = peak(), pool.stats().peak
    for _ in range(3):
        exec(statement)
print(peak() - before, (pool.stats().peak - allocated) >> 20)
"""


@pytest.mark.parametrize("name", STATEMENTS)
def test_neither_pool_nor_process_grows(name, tmp_path):
    """Data of 32 MB each; what grows stays far below one of them."""
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, STATEMENTS[name]],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=100,
        env=os.environ | {"GNOMON_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    process, pooled = map(int, ran.stdout.split())
    assert process < 6, f"{name}: the process's peak grew by {process} MB"
    assert pooled < 1, f"{name}: the pool grew by {pooled} MB"
