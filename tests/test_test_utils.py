"""`mx.test_utils`: every helper passes what is right and refuses what is wrong."""

import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

import gnomon as mx
from gnomon import test_utils as tu

A, B = mx.sym.Variable("a"), mx.sym.Variable("b")
HERE = {"a": np.arange(6.0).reshape(2, 3), "b": np.full((2, 3), 2.0)}
ONES = np.ones((2, 3))


def test_tolerances_go_by_the_less_precise_dtype():
    half, double = mx.nd.ones((2,), dtype="float16"), np.ones(2)
    assert tu.get_tols(half, double, None, None) == (1e-2, 1e-1)
    assert tu.get_tols(double, double, None, 1e-3) == (1e-5, 1e-3)
    tu.assert_almost_equal(half, double * 1.05)
    with pytest.raises(AssertionError, match="exceeds tolerance"):
        tu.assert_almost_equal(double, double * 1.05)


@pytest.mark.parametrize(
    ("a", "b", "fits"),
    [
        ([1.0, 2.0], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([1.0, np.nan], [1.0, np.nan], False),
        ([np.inf], [np.inf], True),
        ([np.inf], [-np.inf], False),
        ([1, 2], [1, 2], True),
        ([1, 2], [1, 3], False),
        ([[1.0], [1.0]], [1.0], True),
        ([1.0, 2.0, 3.0], [1.0, 2.0], False),
        ([], [], True),
    ],
)
def test_almost_equal(a, b, fits):
    a, b = np.array(a), np.array(b)
    if fits:
        tu.assert_almost_equal(a, b)
        assert tu.almost_equal(a, b)
    else:
        with pytest.raises(AssertionError):
            tu.assert_almost_equal(a, b)


def test_nan_and_parts():
    a = np.array([1.0, np.nan, 3.0])
    tu.assert_almost_equal(a, a, equal_nan=True)
    tu.assert_almost_equal_ignore_nan(a, np.array([1.0, 5.0, 3.0]))
    tu.assert_almost_equal_with_err(np.ones(4), np.array([1, 1, 1, 2.0]), etol=0.25)
    with pytest.raises(AssertionError, match=r"mismatch 25.0"):
        tu.assert_almost_equal_with_err(np.ones(4), np.array([1, 1, 1, 2.0]), etol=0.2)


def test_a_failure_names_the_worst_first():
    with pytest.raises(AssertionError, match=r"(?s)1: .*\(2,\), x=1.0+, y=9.0+\n.*2: .*\(1,\)"):
        tu.assert_almost_equal(np.ones(3), np.array([1, 2, 9.0]), names=("x", "y"))


def test_memory_shared():
    x = mx.nd.zeros((4,))
    assert tu.same_array(x, x[0:4])
    assert not tu.same_array(x, x.copy())
    assert x.asnumpy().tolist() == [0] * 4


def test_numeric_gradient():
    np.random.seed(0)  # of the sum's weights, which decide how well float32 shows differences
    tu.check_numeric_gradient(A * B, HERE)
    # many elements, whose sum in float32 would hide the differences
    tu.check_numeric_gradient(A * A, [np.linspace(5, 6, 100)], rtol=1e-3, atol=1e-3)
    tu.check_numeric_gradient(A * B, list(HERE.values()), grad_nodes={"a": "add", "b": "null"})
    tu.check_numeric_gradient(mx.sym.Group([A * B, A + B]), HERE, dtype=np.float64)
    with pytest.raises(AssertionError, match="NUMERICAL_a"):
        tu.check_numeric_gradient(mx.sym.BlockGrad(A * B) + A, HERE)
    with pytest.raises(mx.MXNetError, match="2 arrays"):
        tu.check_numeric_gradient(A * B, [ONES])
    with pytest.raises(mx.MXNetError, match="arrays for"):
        tu.check_numeric_gradient(A * B, {"a": ONES, "c": ONES})


def test_numeric_gradient_with_states_and_sparse_gradients():
    net = mx.sym.BatchNorm(A, fix_gamma=False, name="bn")
    values = {"a": np.random.default_rng(0).normal(size=(4, 2)), "bn_gamma": np.ones(2),
              "bn_beta": np.zeros(2)}  # fmt: skip
    states = {"bn_moving_mean": np.zeros(2), "bn_moving_var": np.ones(2)}
    tu.check_numeric_gradient(net, values, states, rtol=0.1, atol=1e-2)
    dot = mx.sym.dot(mx.sym.Variable("a", stype="csr"), B)
    csr = tu.rand_ndarray((3, 4), "csr", density=0.5)
    tu.check_numeric_gradient(
        dot, {"a": csr, "b": np.ones((4, 2))}, grad_nodes=["b"], grad_stype_dict={"b": "row_sparse"}
    )


@pytest.mark.parametrize("req", ["write", "add", "null", {"a": "add", "b": "write"}])
def test_symbolic_results(req):
    tu.check_symbolic_forward(A * B, HERE, [HERE["a"] * 2])
    want = {"a": HERE["b"], "b": HERE["a"]}
    tu.check_symbolic_backward(A * B, HERE, [ONES], want, grad_req=req)
    wrong = {k: v + 1 for k, v in want.items()}
    if req != "null":
        with pytest.raises(AssertionError, match="BACKWARD_"):
            tu.check_symbolic_backward(A * B, HERE, [ONES], wrong, grad_req=req)
    with pytest.raises(AssertionError, match="FORWARD__mul"):
        tu.check_symbolic_forward(A * B, HERE, [HERE["a"] * 3])


def test_consistency():
    def setting(dtype):
        return {"ctx": mx.cpu(), "a": (2, 3), "b": (2, 3), "type_dict": {"a": dtype, "b": dtype}}

    kinds = [setting(t) for t in ("float64", "float32", "float16")]
    product = A * B
    truth = tu.check_consistency(product, kinds)
    assert list(truth) == [*product.list_outputs(), "a", "b"]
    assert {type(x) for x in truth.values()} == {mx.nd.NDArray}
    assert truth["a"].dtype == np.float64
    tu.check_consistency(product, kinds[:1], ground_truth=truth, rtol=9, atol=9)
    with pytest.raises(AssertionError, match="setting_1"):
        tu.check_consistency([A * B, A * B + 1], kinds[:2])


def test_structure_speed_and_forward():
    assert tu.same_symbol_structure(A * 2, B * 2)
    assert not tu.same_symbol_structure(A * 2, B + 2)
    assert tu.check_speed(A * B, HERE, N=1) > 0
    np.testing.assert_array_equal(tu.simple_forward(A * 2, a=ONES), 2 * ONES)


def test_optimizers_compared():
    sgd = [mx.optimizer.SGD(learning_rate=r, momentum=0.9) for r in (0.9, 0.9, 0.5)]
    tu.compare_optimizer(*sgd[:2], [(3, 4), (5,)], np.float32, g_stype="default")
    with pytest.raises(AssertionError):
        tu.compare_optimizer(*sgd[1:], (3, 4), np.float32, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("stype", ["csr", "row_sparse"])
def test_sparse_draws(stype):
    array, parts = tu.rand_sparse_ndarray((20, 10), stype, density=0.5)
    assert (array.stype, array.shape) == (stype, (20, 10))
    assert 0 < len(parts[0]) < 200
    assert not tu.create_sparse_array_zd((3, 4), stype, 0).asnumpy().any()
    ones = tu.create_sparse_array((3, 4), stype, data_init=0.5, density=1).asnumpy()
    np.testing.assert_array_equal(ones, np.full((3, 4), 0.5))


def test_csr_of_doubling_rows_and_shuffled_columns():
    power, _ = tu.rand_sparse_ndarray((4, 16), "csr", density=0.3, distribution="powerlaw")
    assert (power.asnumpy() != 0).sum(1).tolist() == [1, 2, 4, 8]
    again = tu.shuffle_csr_column_indices(power)
    np.testing.assert_array_equal(again.asnumpy(), power.asnumpy())


def test_shapes_and_matrices():
    assert all(1 <= n <= 3 for n in tu.rand_shape_nd(5, 3))
    assert tu.rand_shape_2d(1, 1) == (1, 1)
    q = tu.new_orthonormal_matrix_2d(4)
    np.testing.assert_allclose(q @ q.T, np.eye(4), atol=1e-12)
    real = tu.new_matrix_with_real_eigvals_nd((2, 3, 3))
    assert np.abs(np.linalg.eigvals(real).imag).max() < 1e-6
    assert tu.create_2d_tensor(2, 3).asnumpy().tolist() == [[0, 0, 0], [1, 1, 1]]
    assert tu.collapse_sum_like(np.ones((4, 2, 3)), (2, 1)).tolist() == [[12], [12]]


def test_chance():
    rng = np.random.default_rng(5)
    buckets, probs = tu.gen_buckets_probs_with_ppf(lambda p: p, 5)
    tu.verify_generator(rng.random, buckets, probs, nsamples=10000)
    with pytest.raises(AssertionError, match="0 of 5"):
        tu.verify_generator(lambda n: rng.random(n) ** 2, buckets, probs, nsamples=10000)
    assert tu.chi_square_check(lambda n: rng.integers(0, 2, n), [0, 1], [0.5, 0.5], 1000)[0] > 1e-4
    assert tu.chi_square_check(lambda n: rng.integers(0, 9, n), [0, 1], [0.5, 0.5], 1000)[0] < 1e-9
    assert tu.mean_check(rng.standard_normal, 0, 1, 1000)
    assert not tu.mean_check(rng.standard_normal, 1, 1, 1000)
    assert tu.var_check(rng.standard_normal, 1, 1000)
    assert not tu.var_check(rng.standard_normal, 2, 1000)


def test_environment_and_stderr(capfd):
    with tu.environment({"GNOMON_A": "1", "PATH": None}):
        assert os.environ["GNOMON_A"] == "1"
        assert "PATH" not in os.environ
    assert "GNOMON_A" not in os.environ
    assert "PATH" in os.environ
    with tu.discard_stderr():
        os.write(2, b"lost")
    os.write(2, b"seen")
    assert capfd.readouterr().err == "seen"


def test_retries():
    tries = []

    @tu.retry(3)
    def third_time():
        tries.append(1)
        assert len(tries) == 3

    third_time()
    with pytest.raises(mx.MXNetError, match="1 or more"):
        tu.retry(0)
    tu.assert_exception(lambda: 1 / 0, ZeroDivisionError)
    with pytest.raises(AssertionError, match="did not raise"):
        tu.assert_exception(lambda: 1, ZeroDivisionError)


def test_one_batch_for_ever():
    real = mx.io.NDArrayIter(ONES, batch_size=2)
    dummy = tu.DummyIter(real)
    assert dummy.next() is dummy.next() is next(iter(dummy))
    assert dummy.provide_data == real.provide_data


def test_local_copies(tmp_path):
    (tmp_path / "there").write_bytes(b"content")
    url = (tmp_path / "there").as_uri()
    got = tu.download(url, dirname=str(tmp_path / "new"), fname="copy")
    assert Path(got).read_bytes() == b"content"
    with pytest.raises(mx.MXNetError, match="by hand"):
        tu.download((tmp_path / "missing").as_uri(), dirname=str(tmp_path), retries=1)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        archive.writestr("inside", "text")
    tu.get_zip_data(str(tmp_path), (tmp_path / "packed.zip").as_uri(), "packed.zip")
    assert (tmp_path / "inside").read_text() == "text"


def test_mnist_from_local_files(tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(mx.MXNetError, match="train-images-idx3-ubyte"):
        tu.get_mnist()
    folder = tmp_path / "mnist"
    folder.mkdir()
    for name, count in (("train", 6), ("t10k", 4)):
        pictures = struct.pack(">4I", 0x803, count, 28, 28) + bytes([255]) * (784 * count)
        labels = struct.pack(">2I", 0x801, count) + bytes(range(count))
        (folder / f"{name}-images-idx3-ubyte").write_bytes(pictures)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(labels)
    data = tu.get_mnist()
    assert data["train_data"].shape == (6, 1, 28, 28)
    assert data["train_data"].max() == 1
    assert data["test_label"].tolist() == [0, 1, 2, 3]
    train, test = tu.get_mnist_iterator(2, (784,), num_parts=2, part_index=1)
    assert train.provide_data[0].shape == (2, 784)
    assert next(test).label[0].asnumpy().tolist() == [1, 3]
    (folder / "t10k-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01\0\0\0\x09")
    with pytest.raises(mx.MXNetError, match="t10k-labels"):
        tu.get_mnist()
