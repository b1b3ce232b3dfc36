"""Worker: statements by gnomon's arrays; `nd_gnomon.py lazy` or `nd_gnomon.py eager`."""

from __future__ import annotations

import sys

import nd_work

import gnomon
from gnomon import config, nd

if __name__ == "__main__":
    config.set("lazy", sys.argv[1] == "lazy")
    nd_work.worker(f"gnomon {gnomon.__version__}", nd.array, nd.waitall, nd=nd)
