"""Optimizer states as bytes: what is written is read again, MXNet's are read, and nothing else."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gnomon as mx
from gnomon import engine
from gnomon.base import FormatError, ParamError
from gnomon.optimizer import states

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "states.json").read_text())


def updater(name: str = "sgd", **arguments: Any) -> Any:
    return mx.optimizer.get_updater(mx.optimizer.create(name, **arguments))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_next_update_after_mxnet_s_states(name):
    case = GOLDEN[name]
    weight = mx.nd.array(case["before"], dtype=case["dtype"])
    again = updater()
    again.set_states(base64.b64decode(case["with_optimizer"]))
    assert type(again.optimizer).__name__.lower() == case["optimizer"]
    assert again.optimizer.num_update == 3
    again(0, mx.nd.array(case["grad"], dtype=case["dtype"]), weight)
    tolerance = 1e-3 if case["dtype"] == "float16" else 1e-6
    np.testing.assert_allclose(weight.asnumpy(), case["after"], rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", GOLDEN)
def test_mxnet_s_states_alone(name):
    content = states.loads(base64.b64decode(GOLDEN[name]["states"]))
    again = states.loads(base64.b64decode(GOLDEN[name]["with_optimizer"]))[0]

    def flat(x: Any) -> list[Any]:
        several = x if isinstance(x, (list, tuple)) else (x,)
        return [y for each in several for y in (flat(each) if each is not x else [each])]

    for one, other in zip(flat(content[0]), flat(again[0]), strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


CONTENTS = [
    {},
    {0: None, "fc_weight": mx.nd.array([1.0, 2.0])},
    {0: (mx.nd.empty((0, 3)), mx.nd.ones((), dtype="float16"))},
    {0: [np.int32([[1, 2]]), True, -3, float("inf"), 1e300, 2**70, "x\ud800\u00e9", None]},
    {0: mx.nd.sparse.row_sparse_array(([[1.0, 2.0]], [1]), shape=(4, 2))},
    {None: {True: {}}, 1.5: ()},
]


@pytest.mark.parametrize("content", CONTENTS, ids=range(len(CONTENTS)))
def test_contents_come_back(content):
    found = states.loads(states.dumps(content))
    assert str(found) == str(content)


@pytest.mark.parametrize("name", mx.optimizer.base.OPTIMIZERS.names())
def test_every_optimizer_comes_back(name):
    arguments = {"lr_scheduler": mx.lr_scheduler.PolyScheduler(20, pwr=3)}
    first = updater(name, **arguments)
    weight = mx.nd.ones((3, 2))
    first([0, 1], [weight * 0.1] * 2, [weight, weight + 1])
    second = updater("test" if name != "test" else "sgd")
    second.set_states(first.get_states(dump_optimizer=True))
    assert type(second.optimizer) is type(first.optimizer)
    counts = second.optimizer._all_index_update_counts
    assert counts == {0: {0: 1, 1: 1}} and second.optimizer._index_update_count is counts[0]
    mx.random.seed(1)
    one, other = weight.copy(), weight.copy()
    first(0, weight * 0.2, one)
    mx.random.seed(1)
    second(0, weight * 0.2, other)
    np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())


def test_what_cannot_be_written_is_named():
    optimizer = updater()
    optimizer.states["w"] = (None, lambda: 0)
    with pytest.raises(ParamError, match=r"get_states: argument \"states\['w'\]\[1\]\".*function"):
        optimizer.get_states()


class Runs:
    """Runs a command when it is unpickled."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


def hostile(mark: Path) -> dict[str, bytes]:
    """Pickles that would make `mark`, take all memory, or never end."""
    twice: Any = ()
    for _ in range(100):
        twice = (twice, twice)
    deep = b"\x80\x04" + b"]" * 100_000 + b"a" * 99_999 + b"."
    huge = struct.pack("<I", 1 << 31)
    calls = {
        "os.system": Runs(os.system, f"touch {mark}"),
        "open": Runs(open, str(mark), "w"),
        "exec": Runs(exec, f"open({str(mark)!r}, 'w')"),
        "eval": Runs(eval, f"open({str(mark)!r}, 'w')"),
        "getattr": Runs(getattr, "x", "upper"),
        "our own": Runs(mx.nd.save, str(mark), mx.nd.ones((1,))),
        "a NumPy file": Runs(np.save, str(mark), 1),
        "a byte array": Runs(bytearray, 1 << 40),
    }
    found = {
        f"{name}, protocol {p}": pickle.dumps({0: call}, p)
        for name, call in calls.items()
        for p in range(6)
    }
    return found | {
        "a key": b"\x80\x04}" + pickle.dumps(twice, 2)[2:-1] + b"K\x01s.",
        "twins": pickle.dumps(twice),
        "deep": deep,
        "a far memo": b"\x80\x04}r" + huge + b".",
        "a long text": b"\x80\x04X" + huge + b"x.",
        "a long byte array": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.",
        "an extension": b"\x80\x04\x82\x01.",
        "no stack": b"\x80\x04R.",
        "a changed class": b"\x80\x04\x8c\x05mxnet\x8c\x01x\x93}\x8c\x01a\x8c\x01bsb.",
        "a method": b"\x80\x04\x8c\x0fmxnet.optimizer\x8c\x15SGD.register.__call__\x93)R.",
        "no class": b"\x80\x04\x8c\x0fmxnet.optimizer\x8c\x01x\x93)R}b.",
        "an array of nothing": b"\x80\x04\x8c\x0dmxnet.ndarray\x8c\x01x\x93)R.",
    }


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", hostile(Path("x")))
def test_a_hostile_pickle_does_nothing(name, tmp_path):
    mark = tmp_path / "mark"
    target = updater()
    target.states = before = {0: mx.nd.ones((2,))}
    data = hostile(mark)[name]
    if name == "a far memo":  # harmless to a reader that keeps what is noted in a dictionary
        target.set_states(data)
    else:
        with pytest.raises(FormatError, match="set_states: argument 'states': expected"):
            target.set_states(data)
        assert target.states is before
    assert not mark.exists()


class Stand:
    """Stands for a class of MXNet's in a pickle."""

    def __init__(self, *args: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)


class Plain(pickle.Unpickler):
    """Python's reader, without MXNet: classes of its are made up."""

    def find_class(self, module: str, name: str) -> Any:
        if module.startswith("mxnet."):
            return type(name, (Stand,), {"__module__": module})
        return super().find_class(module, name)


@pytest.mark.parametrize("name", GOLDEN)
def test_mxnet_finds_what_it_looks_for(name):
    data = base64.b64decode(GOLDEN[name]["with_optimizer"])
    own = updater()
    own.set_states(data)
    theirs, ours = (Plain(io.BytesIO(x)).load() for x in (data, own.get_states(True)))

    def outline(x: Any) -> Any:
        if isinstance(x, (tuple, list)):
            return [outline(y) for y in x]
        if isinstance(x, dict):
            return {key: outline(value) for key, value in x.items()}
        return (type(x).__module__, type(x).__name__) if isinstance(x, Stand) else type(x)

    assert outline(ours) == outline(theirs)
    assert vars(theirs[1]).keys() <= vars(ours[1]).keys()
    counts = ours[1]._all_index_update_counts
    assert ours[1]._index_update_count is counts[0]
    handles = [found[0][0] for found in (theirs, ours)]
    while not isinstance(handles[0], Stand):
        handles = [x[0] for x in handles]
    assert handles[0].handle == handles[1].handle


@mx.optimizer.register
class Halfway(mx.optimizer.Optimizer):
    """Has an argument, which is no attribute, and an array of NumPy's."""

    def __init__(self, wanted: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = np.arange(wanted)

    def update(self, index: Any, weight: Any, grad: Any, state: Any) -> None:
        weight[:] = weight - grad


def test_an_optimizer_of_the_program_comes_back():
    first = updater("halfway", wanted=3)
    first(0, mx.nd.ones((2,)), mx.nd.ones((2,)))
    second = updater()
    second.set_states(first.get_states(dump_optimizer=True))
    assert type(second.optimizer) is Halfway
    assert second.optimizer.table.tolist() == [0, 1, 2]


def test_states_that_are_not_lbsgd_s_are_told():
    optimizer = updater("lbsgd", momentum=0.5, batch_scale=2)
    optimizer.set_states(states.dumps({0: mx.nd.ones((2,))}))
    with pytest.raises(FormatError, match=r"states.0.': expected 2 arrays .* as LBSGD of a"):
        optimizer(0, mx.nd.ones((2,)), mx.nd.ones((2,)))
    optimizer = updater("lbsgd", momentum=0.5)
    optimizer.set_states(states.dumps({0: None}))
    with pytest.raises(ParamError, match="LBSGD: argument 'states'"):
        optimizer(0, mx.nd.ones((2,)), mx.nd.ones((2,)))


def test_no_cut_or_changed_byte_does_more_than_fail():
    whole = states.dumps({0: (mx.nd.ones((2,)), 0.5)})
    pickled = base64.b64decode(GOLDEN["momentum"]["with_optimizer"])
    rng = np.random.default_rng(0)
    for data in (whole, pickled):
        for end in range(0, len(data), 7):
            with pytest.raises(FormatError):
                states.loads(data[:end])
        for _ in range(300):
            changed = bytearray(data)
            changed[rng.integers(len(data))] = rng.integers(256)
            try:
                states.loads(bytes(changed))
            except FormatError:
                continue


@pytest.mark.parametrize(
    ("saved", "used", "words"),
    [
        ("momentum", "adam", r"expected 2 arrays of shape \(2, 3\), .*, as Adam of a weight of"),
        ("adam", "momentum", r"got 2 arrays of shape \(2, 3\), .*: are they another optimizer's"),
        ("sgd", "adagrad", "expected 1 array of shape .2, 3., as AdaGrad .* got no array"),
    ],
)
def test_states_of_another_optimizer_are_told(saved, used, words):
    kinds = {"momentum": ("sgd", {"momentum": 0.9})}
    first, second = (
        mx.optimizer.get_updater(mx.optimizer.create(name, **how))
        for name, how in (kinds.get(each, (each, {})) for each in (saved, used))
    )
    grad, weight = mx.nd.ones((2, 3)), mx.nd.ones((2, 3))
    first(0, grad, weight)
    second.set_states(first.get_states())
    with pytest.raises(FormatError, match=r"argument 'states\[0\].*" + words):
        second(0, grad, weight)
    second = mx.optimizer.get_updater(second.optimizer)
    with pytest.raises(FormatError, match=words):
        second.set_states(first.get_states(), {0: weight})
    assert second.states == {}


def test_momentum_may_be_taken_up_and_left():
    for before, after in ((0.0, 0.9), (0.9, 0.0)):
        first, second = (
            mx.optimizer.get_updater(mx.optimizer.SGD(momentum=momentum))
            for momentum in (before, after)
        )
        grad, weight = mx.nd.ones((2, 3)), mx.nd.ones((2, 3))
        first(0, grad, weight)
        second.set_states(first.get_states())
        second(0, grad, weight)
        assert (weight.asnumpy() < 1).all()


def test_a_state_keeps_its_zeros_where_the_first_update_is_left_out():
    def failing(run_ctx):
        raise ValueError("lost")

    weight, grad = mx.nd.ones((3,)), mx.nd.ones((3,))
    updater = mx.optimizer.get_updater(mx.optimizer.SGD(learning_rate=0.5, momentum=0.9))
    engine.get().push_sync(failing, mx.cpu(), (), (grad._var,))
    updater(0, grad, weight)
    with pytest.raises(mx.MXNetError, match="lost"):
        weight.wait_to_read()
    assert updater.states[0].asnumpy().tolist() == [0, 0, 0]
    updater(0, mx.nd.ones((3,)), weight)
    assert weight.asnumpy().tolist() == [0.5, 0.5, 0.5]
