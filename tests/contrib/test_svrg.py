"""Stochastic variance reduced gradients, step for step as MXNet 1.9.1's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from golden import svrg

import gnomon as mx
from gnomon.base import ParamError
from gnomon.contrib.svrg_optimization import SVRGModule

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "svrg.json").read_text())


@pytest.mark.parametrize("optimizer", svrg.OPTIMIZERS)
@pytest.mark.parametrize("rows", svrg.ROWS)
def test_steps(rows: str, optimizer: str) -> None:
    found = svrg.steps(mx, SVRGModule, rows, optimizer)
    np.testing.assert_allclose(found, GOLDEN["steps"][rows][optimizer], 1e-4, 2e-5)


@pytest.mark.parametrize("rows", svrg.ROWS)
def test_fit(rows: str) -> None:
    np.testing.assert_allclose(
        svrg.fitted(mx, SVRGModule, rows), GOLDEN["fitted"][rows], 1e-4, 1e-5
    )


class AsMXNet(SVRGModule):
    """Has MXNet's fault: a mean begins with the last one, divided by the number of batches."""

    def update_full_grads(self, train_data: Any) -> None:
        last = self._param_dict
        super().update_full_grads(train_data)
        for new, old in zip(self._param_dict, last, strict=False):
            for name, mean in new.items():
                mean += old[name] / 4


def test_from_the_second_mean_on_the_last_one_is_all_that_differs_from_mxnet() -> None:
    longer = GOLDEN["fitted longer"]
    np.testing.assert_allclose(svrg.fitted(mx, AsMXNet, "whole", 6), longer, 1e-4, 1e-5)
    found = np.array(svrg.fitted(mx, SVRGModule, "whole", 6))
    assert abs(found - longer).max() > 0.01


def test_several_devices_take_the_steps_of_one() -> None:
    found = []
    for devices in ([mx.cpu()], [mx.cpu(0), mx.cpu(1)]):
        given = svrg.data(mx, 20)
        names = {"data_names": ["data"], "label_names": ["lr_label"], "context": devices}
        module = SVRGModule(svrg.network(mx), update_freq=1, **names)
        rates = {"learning_rate": 0.1}
        start = {"fc_weight": mx.nd.ones((1, 3)), "fc_bias": mx.nd.ones(1)}
        module.fit(given, eval_metric="mse", optimizer_params=rates, num_epoch=2, arg_params=start)
        found.append(svrg.weights(module))
    np.testing.assert_allclose(*found, 1e-5, 1e-6)


def test_the_mean_is_that_of_all_batches_each_time() -> None:
    module, given = svrg.made(mx, SVRGModule, 20)
    module.init_optimizer(optimizer_params={"learning_rate": 0.1})
    given.reset()
    x, y = (
        np.concatenate(p)
        for p in zip(*((b.data[0].asnumpy(), b.label[0].asnumpy()) for b in given), strict=True)
    )
    for _ in range(2):
        module.update_full_grads(given)
        weight = np.array(svrg.weights(module))
        error = x @ weight[:3, None] + weight[3] - y
        (means,) = module._param_dict
        np.testing.assert_allclose(means["fc_weight"].asnumpy(), error.T @ x / 4, 1e-4, 1e-5)
        np.testing.assert_allclose(means["fc_bias"].asnumpy(), error.sum(0) / 4, 1e-4, 1e-5)
        given.reset()
        for batch in given:
            module.forward_backward(batch)
            module.update()


def test_frequency() -> None:
    for wrong in (None, 0, 1.5, True):
        with pytest.raises(ParamError, match="update_freq"):
            SVRGModule(svrg.network(mx), update_freq=wrong)
