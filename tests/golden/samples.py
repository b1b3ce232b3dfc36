"""Large arrays told by a sample and two sums."""

from __future__ import annotations

import numpy as np

LIMIT, STEP = 2048, 61


def sample(values: np.ndarray) -> dict[str, np.ndarray]:
    """All of a small array; of a large one every 61st element, the sum and the sum of squares.

    >>> sample(np.arange(3))
    {'all': array([0, 1, 2])}
    >>> {k: v.shape for k, v in sample(np.ones((64, 64))).items()}
    {'some': (68,), 'sums': (2,)}
    """
    if values.size <= LIMIT:
        return {"all": values}
    flat = values.astype("f8").ravel()
    return {"some": values.ravel()[::STEP], "sums": np.array([flat.sum(), flat @ flat])}
