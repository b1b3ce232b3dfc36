"""Executors that share memory, and those of other shapes."""

import numpy as np
import pytest

import gnomon as mx
from gnomon.base import ShapeError
from tests.executor.test_executor import bound, check, mlp


def test_reshaping_keeps_the_parameters():
    executor = bound()
    small = executor.reshape(data=(2, 6), softmax_label=(2,))
    assert small.arg_dict["fc1_weight"] is executor.arg_dict["fc1_weight"]
    assert small.arena is executor.arena
    values = executor.arg_dict["data"].asnumpy()[:2]
    np.testing.assert_array_equal(small.arg_dict["data"].asnumpy(), values)
    small.forward(is_train=True)
    small.backward()
    check(small)
    executor.forward(is_train=True)
    executor.backward()
    check(executor)


def test_reshaping_asks_for_permission():
    executor = bound()
    with pytest.raises(ShapeError, match="allow_up_sizing"):
        executor.reshape(data=(9, 6), softmax_label=(9,))
    with pytest.raises(ShapeError, match=r"'softmax_label'.*partial_shaping"):
        executor.reshape(data=(2, 6))
    large = executor.reshape(data=(9, 6), softmax_label=(9,), allow_up_sizing=True)
    assert large.forward()[0].shape == (9, 3)
    assert executor.reshape(data=(2, 6), partial_shaping=True).outputs[0].shape == (2, 3)


@pytest.mark.parametrize("how", ["reshape", "shared_exec"])
def test_one_that_shares_memory_begins_with_what_the_other_takes(how):
    """So memory does not grow from small to large where the larger one is bound first."""
    alone = bound()
    alone.forward(is_train=True)
    first = bound()
    if how == "reshape":
        second = first.reshape(data=(2, 6), softmax_label=(2,))
    else:
        second = mlp().simple_bind(mx.cpu(), shared_exec=first, data=(2, 6))
    for executor in (second, first):
        executor.forward(is_train=True)
        executor.backward()
        assert first.arena.nbytes == alone.arena.nbytes


def test_only_the_program_that_runs_is_laid_out():
    executor = bound()
    executor.forward()
    assert [mode.train for mode in executor._runs] == [False]
    executor.forward(is_train=True)
    executor.backward()
    check(executor)


def test_executors_of_one_memory():
    params = ["fc1_weight", "fc1_bias", "fc2_weight", "fc2_bias"]
    first = bound()
    second = mlp().simple_bind(mx.cpu(), shared_exec=first, shared_arg_names=params, data=(3, 6))
    assert second.arena is first.arena
    assert second.arg_dict["fc1_weight"] is first.arg_dict["fc1_weight"]
    assert second.arg_dict["data"] is not first.arg_dict["data"]
    second.arg_dict["data"][:] = 1
    for executor in (first, second, first):
        executor.forward(is_train=True)
        executor.backward()
        check(executor)
    with pytest.raises(ShapeError, match=r"fc1_weight.*shared_exec"):
        mlp().simple_bind(mx.cpu(), shared_exec=first, shared_arg_names=params, data=(3, 9))


def test_a_table_of_arrays_grows():
    table = {}
    large = mlp().simple_bind(mx.cpu(), shared_buffer=table, data=(5, 6))
    small = mlp().simple_bind(mx.cpu(), shared_buffer=table, data=(2, 6))
    assert table["data"] is large.arg_dict["data"]
    small.arg_dict["data"][:] = 7
    assert (large.arg_dict["data"].asnumpy()[:2] == 7).all()
