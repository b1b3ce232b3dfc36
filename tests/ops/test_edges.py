"""Arrays that share memory and operators at their edges, as MXNet 1.9.1 has them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from golden import statements

import gnomon as mx

RECORDED = json.loads((Path(statements.__file__).parent / "edges.json").read_text())


@pytest.mark.parametrize("case", statements.cases("edges"))
def test_as_mxnet(case):
    statements.check(mx, case, RECORDED[case])
