"""Worker: statements by the real MXNet's arrays."""

from __future__ import annotations

import mxnet as mx
import nd_work

if __name__ == "__main__":
    nd_work.worker(f"MXNet {mx.__version__}", mx.nd.array, mx.nd.waitall, nd=mx.nd)
