"""Functions and augmenters of `mx.image`, pixel by pixel as the real library's."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest
from golden import augmenters

import gnomon as mx

GOLDEN = Path(__file__).parent.parent / "golden"
RECORDED = json.loads(gzip.decompress((GOLDEN / "augmenters.json.gz").read_bytes()))


@pytest.fixture(scope="module")
def found():
    return augmenters.results(mx)


def same(ours, theirs):
    """Arrays equal but for 1 where OpenCV's cubic interpolation rounds otherwise; numbers equal."""
    if not isinstance(theirs, list):
        assert ours == theirs
    elif theirs and isinstance(theirs[0], str):
        assert ours[:2] == theirs[:2]
        whole = theirs[0] == "uint8"
        np.testing.assert_allclose(ours[2], theirs[2], rtol=0, atol=1 if whole else 2e-3)
        assert np.mean(np.array(ours[2]) != theirs[2]) < 0.25 or not whole
    else:
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)


def rounded(told):
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.6g}", json.dumps(told))


@pytest.mark.parametrize("name", RECORDED)
def test_results_are_those_of_the_real_library(found, name):
    if name.startswith("told"):
        assert rounded(found[name]) == rounded(RECORDED[name])
    else:
        same(found[name], RECORDED[name])


def test_every_augmenter_is_compared():
    texts = [(GOLDEN / f"{name}.py").read_text() for name in ("augmenters", "detection")]
    names = [name for name in mx.image.__all__ if re.search("Aug(menter)?$", name)]
    bases = {"Augmenter", "DetAugmenter"}
    assert len(names) > 25
    assert [n for n in names if n not in bases and not any(n in text for text in texts)] == []
