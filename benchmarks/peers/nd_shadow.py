"""Worker: the statement of stochastic gradient descent by the tensors of `gnomon.shadow`."""

from __future__ import annotations

import nd_work

from gnomon import shadow

if __name__ == "__main__":
    nd_work.worker("gnomon.shadow", shadow.Tensor, lambda: None, only="sgd")
