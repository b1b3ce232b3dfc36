"""Pictures that ImageRecordIter moves are MXNet's, whichever OpenCV there is."""

import json
from pathlib import Path

from golden import warps

import gnomon as mx


def test_moved_pictures_are_the_real_ones(tmp_path):
    recorded = Path(warps.__file__).with_name("warps.json")
    assert warps.moved(mx, str(tmp_path)) == json.loads(recorded.read_text())
