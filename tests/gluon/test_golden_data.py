"""Transforms, samplers, data sets and utilities of Gluon against the real library."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from golden import gluon_data

import gnomon as mx

FILE = Path(__file__).parent.parent / "golden" / "gluon_data.json.gz"
RECORD = json.loads(gzip.decompress(FILE.read_bytes()))


def is_array(told):
    """Whether it is `[dtype, shape, numbers]`."""
    return isinstance(told, list) and len(told) == 3 and isinstance(told[0], str)


def alike(found, expected, where):
    """Numbers are alike, all else is equal."""
    if is_array(expected):
        assert found[:2] == expected[:2], where
        np.testing.assert_allclose(found[2], expected[2], rtol=1e-4, atol=1e-5, err_msg=where)
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for one, other in zip(found, expected, strict=True):
            alike(one, other, where)
    else:
        assert found == pytest.approx(expected, rel=1e-5), where


@pytest.mark.parametrize("part", ["images", "numbers", "utilities"])
def test_alike(part):
    found = {k: gluon_data.told(x) for k, x in getattr(gluon_data, part)(mx).items()}
    assert found.keys() <= RECORD.keys()
    for name, each in found.items():
        alike(json.loads(json.dumps(each)), RECORD[name], name)


def test_all_are_there():
    assert set(RECORD) == set(gluon_data.record(mx))
