"""Programs that are compared with MXNet do lazily what they do line by line."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gnomon as mx
from tests.crossing.__main__ import Hunt, run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(3))
def test_a_program_that_is_not_waited_for(seed):
    without: Any = None  # an oracle: MXNet is not needed here
    with np.errstate(all="ignore"):
        hunt = Hunt(mx, without, 16)
        lines = hunt.write(seed)
        waited, lazily = (run(mx, lines, each) for each in (True, False))
    assert not hunt.compare(lines, lazily, waited, "lazily", lazy=True)
    assert any(value[:1] == ("array",) for value in waited[1].values())


class Itself:
    """Gnomon in place of the process with MXNet."""

    def run(self, lines: list[str], noise: int = 0) -> Any:
        return run(mx, lines, each=True, noise=noise)


CENTRED = """
x = nd.array(filled(37, (8, 3), 'float32', 1))
n = gluon.nn.BatchNorm(prefix='n_')
n.initialize()
n(x)
t = gluon.Trainer(n.collect_params(), 'OPTIMIZER', {'learning_rate': 0.125})
c = autograd.record(); _ = c.__enter__()
y = n(x) * 3
c.__exit__(None, None, None)
y.backward()
t.step(1)
qn = n.gamma.data().copy()
""".strip()


@pytest.mark.parametrize(("optimizer", "chance"), [("signum", True), ("sgd", False)])
def test_steps_that_roundings_decide_are_told_from_differences(optimizer, chance):
    lines = CENTRED.replace("OPTIMIZER", optimizer).splitlines()  # gamma's gradient is 0
    itself: Any = Itself()
    hunt = Hunt(mx, itself, 16)
    assert hunt.is_chance(lines, "qn", itself.run(lines)[1]["qn"]) == chance
