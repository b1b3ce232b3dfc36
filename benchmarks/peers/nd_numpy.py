"""Worker: statements by NumPy's arrays."""

from __future__ import annotations

import nd_work
import numpy as np

if __name__ == "__main__":
    nd_work.worker(f"NumPy {np.__version__}", np.copy, lambda: None)
