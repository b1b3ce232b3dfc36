"""Writes `special.npz`: special functions as sums of two float64; needs mpmath."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from mpmath import mp, mpf

mp.prec = 200
RANGES = [(0.0, 3.0), (3.0, 30.0), (30.0, 160.0), (-5.0, 0.0), (-40.0, -5.0)]
GELU = [(-3.0, 3.0), (-37.0, -1.0), (3.0, 9.0), (-38.5, -37.0)]
FUNCTIONS = {
    "erf": (mp.erf, [(-1.0, 1.0), (0.9, 6.0)]),
    "erfinv": (mp.erfinv, [(-1.0, 1.0), (0.9, 1.0), (0.999999, 1.0)]),
    "gamma": (mp.gamma, RANGES),
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))), RANGES),
    "digamma": (mp.digamma, RANGES),
    "trigamma": (lambda x: mp.psi(1, x), RANGES),
    "sinpi": (mp.sinpi, [(-1.0, 1.0), (-50.0, 50.0)]),
    "cospi": (mp.cospi, [(-1.0, 1.0), (-50.0, 50.0)]),
    "gelu": (lambda x: x * mp.ncdf(x), GELU),
    "gelu_slope": (lambda x: mp.ncdf(x) + x * mp.npdf(x), [(-0.5, 3.0), (-3.0, -1.0), *GELU[1:]]),
}


def main() -> None:
    """Write the file beside this one."""
    rng = np.random.default_rng(0)
    found = {}
    for name, (function, ranges) in FUNCTIONS.items():
        x = np.concatenate([rng.uniform(low, high, 150) for low, high in ranges])
        values = [function(mpf(v)) for v in x]
        high = np.array([float(v) for v in values])
        found[name] = np.array(
            [x, high, [float(v - mpf(h)) for v, h in zip(values, high, strict=True)]]
        )
    np.savez_compressed(Path(__file__).with_name("special.npz"), **found)


if __name__ == "__main__":
    main()
