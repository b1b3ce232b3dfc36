"""Worker: statements by PyTorch's tensors."""

from __future__ import annotations

import os

import nd_work
import torch

if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    nd_work.worker(f"PyTorch {torch.__version__}", torch.from_numpy, lambda: None)
