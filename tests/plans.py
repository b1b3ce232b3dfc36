"""A plugin of pytest: `-p tests.plans --plans FOLDER` keeps every plan that a run compiles there.

What is kept is the code for machines elsewhere; `tests/code/test_targets.py` has it assembled.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from gnomon.plan import pipeline
from gnomon.plan.ir import Kernel
from gnomon.plan.statement import Store, Structure
from tests.code.elsewhere import keep, texts


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--plans", type=Path, help="keep every plan that is compiled in this folder")


def pytest_configure(config: pytest.Config) -> None:
    """Planning keeps what it makes."""
    folder = config.getoption("--plans")
    if folder is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    plan = pipeline.plan

    def kept(stores: Sequence[Store], structure: Structure) -> Kernel:
        nests = plan(stores, structure)
        keep(texts(nests), folder)
        return nests

    pipeline.plan = kept
