"""Wrong, unknown and missing parameters of every operator are refused where MXNet refuses them."""

import json
from pathlib import Path

import pytest

from gnomon.base import MXNetError
from gnomon.ops import find

FILE = Path(__file__).parent.parent / "golden" / "refused.json"
RECORDED = json.loads(FILE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", RECORDED)
def test_refused(name):
    kind = find(name)
    for given in RECORDED[name]:
        with pytest.raises(MXNetError, match=kind.name):
            kind.parse(given)
