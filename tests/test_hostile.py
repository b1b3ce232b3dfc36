"""Whatever is public may be called with anything: errors come of it, no crash, no hang."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import hostile
import numpy as np
import pytest

import gnomon as mx

ROOT = Path(__file__).parent.parent
HOUR = 3600


def attack(seed: int, count: int, folder: Path) -> None:
    """One child; AssertionError with its last calls unless it comes to its end."""
    log = folder / f"calls{seed}"
    env = {**os.environ, "PYTHONPATH": str(ROOT), "GNOMON_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, hostile.__file__, str(seed), str(count), str(log)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    calls = log.read_text().splitlines() if log.exists() else []
    told = "\n".join([*calls[-3:], done.stderr[-1500:]])
    assert done.returncode == 0 and calls[-1] == "ended", f"seed {seed}: {done.returncode}\n{told}"


WRONG: list[Callable[[], object]] = [
    lambda: mx.nd.hypot(np.zeros(()), np.zeros((0, 3))),
    lambda: mx.nd.greater(2**70, np.zeros(4)),
    lambda: mx.nd.onehot_encode(1, 0.5),
    lambda: mx.nd.histogram(1j, bins=3),
    lambda: mx.nd.moveaxis((), 0, 1),
    lambda: mx.nd.split_v2(mx.cpu(), 2),
    lambda: mx.nd.linspace(0, 1, mx.cpu()),
    lambda: mx.nd.random.uniform(out=[1]),
    lambda: mx.nd.random.exponential("x"),
    lambda: mx.nd.zeros(2, ctx={}),
    lambda: mx.nd.zeros(2, ctx="cpu(x)"),
    lambda: mx.sym.Variable("x", attr={1: "2"}),
    lambda: mx.sym.zeros(2, attr=3),
    lambda: mx.sym.Group(1),
    lambda: mx.sym.maximum((), {}),
    lambda: mx.io.ResizeIter((), 3),
    lambda: mx.optimizer.SGD(lr_scheduler=3, learning_rate=1),
    lambda: mx.optimizer.SGD().set_lr_mult(3),
    lambda: mx.optimizer.create(iter(())),
    lambda: mx.optimizer.Optimizer.register(3),
    lambda: mx.metric.register(3),
    lambda: mx.metric.TopKAccuracy((1,)),
    lambda: mx.metric.create("acc").update_dict(3, {}),
    lambda: mx.init.register(...),
    lambda: mx.init.Mixed(slice(1), 3),
    lambda: mx.kv.create(len),
    lambda: mx.kv.KVStoreBase.register(3),
    lambda: mx.lr_scheduler.PolyScheduler(3, len),
    lambda: mx.gluon.rnn.ResidualCell({}),
    lambda: mx.gluon.rnn.ZoneoutCell(np.zeros(2)),
    lambda: mx.gluon.nn.Dense(2, params=b""),
    lambda: mx.gluon.nn.Embedding("x", 3),
    lambda: mx.gluon.utils.split_data(len, 2),
    lambda: mx.rnn.ZoneoutCell(3),
    lambda: mx.rnn.BidirectionalCell((), 3),
    lambda: mx.image.CreateAugmenter({}),
    lambda: mx.image.RandomCropAug(3),
    lambda: mx.image.ResizeAug("x"),
    lambda: mx.image.HorizontalFlipAug("x"),
    lambda: mx.image.CastAug()(3),
    lambda: mx.image.ColorNormalizeAug((1,), None)("x"),
    lambda: mx.image.CenterCropAug((2, 2))("x"),
    lambda: mx.image.BrightnessJitterAug(0.5)(np.ones((2, 2, 3))),
    lambda: mx.image.SequentialAug([3]),
    lambda: mx.image.random_crop(mx.nd.ones((4, 4, 3)), 2),
    lambda: mx.image.imrotate(3, 4),
    lambda: mx.image.random_rotate(mx.nd.ones((1, 2, 2)), (1,)),
    lambda: mx.image.imdecode(3),
    lambda: mx.image.scale_down("x", (1, 2)),
    lambda: mx.image.ImageIter(1, {}),
    lambda: mx.image.ColorJitterAug(None, 1, 2),
    lambda: mx.image.DetRandomPadAug(aspect_ratio_range=(2,)),
    lambda: mx.image.color_normalize(mx.cpu(), 3),
    lambda: mx.image.copyMakeBorder("x", 1, 1, 1, 1),
    lambda: mx.recordio.pack({}, b""),
    lambda: mx.recordio.unpack(3),
    lambda: mx.recordio.MXRecordIO(3, "r"),
    lambda: mx.gluon.utils.split_and_load(mx.nd.ones(2), mx.cpu()),
    lambda: mx.gluon.utils.split_data(mx.nd.ones(2), {}),
    lambda: mx.gluon.utils.clip_global_norm(mx.nd.ones(2), 1),
    lambda: mx.gluon.data.ArrayDataset(3),
    lambda: mx.gluon.data.RecordFileDataset(3),
    lambda: mx.gluon.data.BatchSampler([1], "x"),
    lambda: mx.gluon.data.RandomSampler("x"),
    lambda: mx.gluon.data.FilterSampler(len, len),
    lambda: mx.gluon.data.SimpleDataset([1]).take("x"),
    lambda: mx.gluon.data.SimpleDataset([1]).shard("x", 0),
    lambda: mx.lr_scheduler.FactorScheduler("x"),
    lambda: mx.lr_scheduler.MultiFactorScheduler(["x"]),
    lambda: mx.lr_scheduler.CosineScheduler(3.5),
    lambda: mx.init.Xavier(magnitude="x"),
    lambda: mx.io.PrefetchingIter(mx.io.NDArrayIter(np.ones(2)), rename_data=...),
    lambda: mx.model.FeedForward(3),
    lambda: mx.optimizer.SGD(param_dict=3),
    lambda: mx.optimizer.SGD(sym=3),
    lambda: mx.metric.CompositeEvalMetric(True),
    lambda: mx.metric.check_label_shapes(3, []),
    lambda: mx.nd.concatenate(3),
    lambda: mx.gluon.rnn.GRUCell("x"),
    lambda: mx.gluon.nn.LeakyReLU("x"),
    lambda: mx.gluon.nn.Dense(1).apply(3),
    lambda: mx.gluon.nn.Dense(1).load(3),
    lambda: mx.gluon.nn.MaxPool2D(layout=np.zeros(2)),
    lambda: mx.gluon.Parameter("w", shape=1e308 * 10),
    lambda: mx.rnn.FusedRNNCell(3, mode=np.zeros(2)),
    lambda: mx.Context({}),
    lambda: mx.nd.from_numpy(3),
    lambda: mx.nd.to_dlpack_for_read(3),
    lambda: mx.sym.full((2,), "x"),
    lambda: mx.metric.Accuracy().measure("x", None),
    lambda: mx.metric.F1().update([["x"]], [mx.nd.ones((1, 2))]),
    lambda: mx.metric.Loss().update(None, [object()]),
    lambda: mx.optimizer.Adam().create_state(0, 3),
    lambda: mx.optimizer.SGD(multi_precision=True).create_state_multi_precision(0, None),
    lambda: mx.optimizer.SGD().formula(3, None, (), 1),
    lambda: mx.executor_manager.DataParallelExecutorManager(3, mx.cpu(), None),
    lambda: mx.executor_manager.DataParallelExecutorManager(mx.sym.Variable("x"), 3, None),
    lambda: mx.executor_manager.DataParallelExecutorManager(mx.sym.Variable("x"), mx.cpu(), 3),
    lambda: mx.executor_manager.DataParallelExecutorGroup(3, (), (), (), (), None),
    lambda: mx.executor_manager.DataParallelExecutorGroup(
        mx.sym.Variable("x"), (), (), [mx.cpu()], 3, None
    ),
    lambda: mx.callback.save_checkpoint("x", 1, (), {}, {}),
]


@pytest.mark.parametrize("call", WRONG, ids=range(len(WRONG)))
def test_an_error_names_the_argument_that_is_of_no_use(call):
    with pytest.raises((TypeError, ValueError), match=r"argument '.*expected .*got"):
        call()


UNKNOWN = {
    "batchsize": lambda: mx.gluon.data.DataLoader([1], batchsize=1),
    "optimiser": lambda: mx.gluon.Trainer({}, optimiser="sgd"),
    "label_name": lambda: mx.mod.Module(mx.sym.Variable("data"), label_name=None),
    "default_bucket": lambda: mx.mod.BucketingModule(len, default_bucket=1),
    "datas": lambda: mx.io.NDArrayIter(datas=1),
    "lr": lambda: mx.optimizer.SGD(lr=0.1),
    "axes": lambda: mx.metric.Accuracy(axes=1),
    "magntude": lambda: mx.init.Xavier(magntude=3),
    "stepp": lambda: mx.lr_scheduler.FactorScheduler(stepp=3),
    "unit": lambda: mx.gluon.nn.Dense(unit=3),
    "shap": lambda: mx.gluon.Parameter("w", shap=3),
    "intervall": lambda: mx.mon.Monitor(intervall=3),
    "sizes": lambda: mx.image.ResizeAug(sizes=3),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_keyword_that_is_unknown_is_told_with_the_nearest(name):
    with pytest.raises(TypeError, match=rf"argument '{name}': expected one of .*did you mean "):
        UNKNOWN[name]()


def test_an_iterator_over_arrays_has_no_batch_before_the_first():
    with pytest.raises(mx.MXNetError, match="no batch before"):
        mx.io.NDArrayIter(np.zeros((4, 2)), batch_size=2).getdata()
    with pytest.raises(TypeError, match="it is a base"):
        mx.io.MXDataIter()


@pytest.mark.parametrize("seed", [1, 2])
def test_some_hostile_calls(seed, tmp_path):
    attack(seed, 150, tmp_path)


@pytest.mark.long
@pytest.mark.timeout(2 * HOUR)
def test_an_hour_of_hostile_calls(tmp_path):
    began, seed = time.monotonic(), 1000
    while time.monotonic() - began < HOUR:
        attack(seed, 1000, tmp_path)
        seed += 1
    print(f"{seed - 1000} seeds of 1000 steps")


@pytest.mark.long
@pytest.mark.timeout(2 * HOUR)
def test_every_slot_of_what_users_hold():
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(ROOT / "tests" / "hostile_slots.py"), "0", "1"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.endswith(" 0 crashes\n"), done.stdout
