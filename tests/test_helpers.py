"""What programs written for MXNet import from `mx.base`, `mx.util`, `mx.log` and `mx.error`."""

import array
import ctypes
import logging

import numpy as np
import pytest

import gnomon as mx
from gnomon import base, error, log, util


def test_types_and_marks():
    assert base.mx_real_t is np.float32
    assert isinstance(np.int64(1), base.integer_types)
    assert isinstance(np.float32(1), base.numeric_types)
    assert isinstance("x", base.string_types)
    assert not base._Null
    assert repr(base._Null) == "_Null"
    assert base.py_str(b"\xc3\xa9") == base.py_str("é") == "é"
    assert base.NotImplementedForSymbol is mx.sym.NotImplementedForSymbol
    with pytest.raises(AttributeError, match="mx_real_t"):
        _ = base.mx_real


def test_data_folder(monkeypatch):
    monkeypatch.delenv("MXNET_HOME", raising=False)
    assert base.data_dir() == base.data_dir_default()
    monkeypatch.setenv("MXNET_HOME", "/elsewhere")
    assert base.data_dir() == "/elsewhere"


def test_c_arrays():
    assert base.c_str("é").value == b"\xc3\xa9"
    assert list(base.c_str_array(["a", "b"])) == [b"a", b"b"]
    numbers = array.array("i", [1, 2])
    base.c_array_buf(ctypes.c_int, numbers)[0] = 7
    assert numbers[0] == 7
    floats = base.c_array(ctypes.c_float, [1, 2, 3, 4])
    shared = base.ctypes2numpy_shared(ctypes.cast(floats, ctypes.POINTER(ctypes.c_float)), (2, 2))
    shared[1, 1] = 9
    assert floats[3] == 9
    text = ctypes.create_string_buffer(b"abcd")
    pointer = ctypes.cast(text, ctypes.POINTER(ctypes.c_char))
    assert base.ctypes2buffer(pointer, 2) == bytearray(b"ab")
    for call in (base.ctypes2buffer, base.ctypes2numpy_shared):
        with pytest.raises((TypeError, RuntimeError), match="expected a pointer"):
            call(3, (1,))


def test_parameter_docs():
    text = base.build_param_doc(["a", "b", "a"], ["int", "str", "x"], ["first", "", "again"])
    assert text == "Parameters\n----------\na : int\n    first\nb : str\n"


def test_scopes_of_shapes():
    assert not mx.is_np_shape()
    with mx.np_shape():
        assert mx.util.is_np_shape()
        with mx.np_shape(False):
            assert not mx.is_np_shape()
    assert mx.set_np_shape(True) is False
    assert mx.set_np_shape(False) is True

    @mx.use_np_shape
    class Both:
        def method(self):
            return mx.is_np_shape()

        @property
        def prop(self):
            return mx.is_np_shape()

    assert Both().method()
    assert Both().prop
    with pytest.raises(TypeError, match="a function or class"):
        mx.use_np_shape(3)


def test_arrays_of_np_are_refused():
    for call in (util.set_np, lambda: mx.use_np(len), lambda: util.np_array().__enter__()):
        with pytest.raises(mx.MXNetError, match=r"mx\.np is out of"):
            call()
    util.reset_np()
    with util.np_array(False):
        assert not mx.is_np_array()


def test_gpus_are_told():
    assert util.get_gpu_count() == 0
    assert util.get_cuda_compute_capability(mx.cpu()) is None
    for call in (
        lambda: util.get_gpu_memory(0),
        lambda: util.get_cuda_compute_capability(mx.gpu()),
    ):
        with pytest.raises(mx.MXNetError, match="GPU"):
            call()


def test_loggers(tmp_path):
    file = tmp_path / "log"
    logger = log.get_logger("gnomon.test.file", str(file), "w", log.DEBUG)
    assert log.getLogger("gnomon.test.file") is logger
    logger.info("100 %% of %d", 3)
    (line,) = file.read_text().splitlines()
    assert line.startswith("I")
    assert line.endswith("] 100 % of 3")
    assert "test_helpers.py:test_loggers" in line
    for handler in logger.handlers:
        handler.close()
    assert log.get_logger() is logging.getLogger()


def test_registered_errors():
    class Cold(error.MXNetError):
        pass

    assert error.register("Cold", Cold) is Cold
    assert error.register_error("Freezing")(Cold) is Cold
    assert error.ERROR_TYPES["Freezing"] is Cold
    with pytest.raises(mx.MXNetError, match="an exception class"):
        error.register("x", 3)


def test_paths_of_older_programs():
    assert mx.io.io.NDArrayIter is mx.io.NDArrayIter
    assert mx.module.base_module.BaseModule is mx.mod.BaseModule
    assert mx.metric.alias("an_alias_of_mse")(mx.metric.MSE) is mx.metric.MSE
    assert mx.model.get_updater is mx.optimizer.get_updater
    arrays = {"w": mx.nd.ones((3,))}
    assert mx.model._create_kvstore("local", 1, arrays) == (None, False)
    store, on_store = mx.model._create_kvstore("local", 2, arrays)
    assert (store.type, on_store) == ("local", True)


def test_names_of_numpys_keywords():
    def twice(x, out=None):
        return x * 2

    for wrap in (util.wrap_np_unary_func, util.wrap_np_binary_func):
        wrapped = wrap(twice)
        assert wrapped(2, where=True, casting="same_kind", order="K", subok=True) == 4
        for given in ({"where": False}, {"dtype": "float32"}, {"order": "C"}):
            with pytest.raises(NotImplementedError, match=next(iter(given))):
                wrapped(2, **given)
        with pytest.raises(TypeError, match="zz is an invalid keyword to function 'twice'"):
            wrapped(2, zz=1)


def test_names_that_programs_import_from_where_mxnet_has_them():
    assert base.register_error is error.register_error
    assert base.c2pyerror("KeyError: 'a'\n  b")[1] == "KeyError"
    assert base.c2pyerror("hello there")[1] is None
    assert mx.gluon.block.load_json('{"a": [1]}') == {"a": [1]}
    assert mx.gluon.trainer.ParameterDict is mx.gluon.ParameterDict
    assert mx.model.DataDesc is mx.rnn.DataDesc is mx.executor_manager.DataDesc is mx.io.DataDesc
    assert mx.rnn.load_checkpoint is mx.model.load_checkpoint
    assert mx.test_utils.Features is mx.runtime.Features
    assert mx.operator.ctypes2numpy_shared is base.ctypes2numpy_shared
    assert mx.nd.get_indexing_dispatch_code((slice(None), [1])) == 1
    assert mx.nd.get_oshape_of_gather_nd_op((3, 4, 5), (1, 6, 7)) == (6, 7, 4, 5)
    whole = (slice(None), [0, 1], slice(None))
    assert mx.nd.indexing_key_expand_implicit_axes(whole[:2], (3, 4, 5)) == (whole, -1)
    rows = mx.nd.sparse.row_sparse_array(([[1.0], [2]], [0, 2]), shape=(3, 1))
    assert mx.nd.sparse.gs_retain(rows, mx.nd.array([2])).indices.asnumpy().tolist() == [2]
    with pytest.raises(mx.MXNetError, match=r"key.*a tuple"):
        mx.nd.get_indexing_dispatch_code(1)


def test_data_sets_say_where_their_files_belong(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tools = mx.test_utils
    for load, file in ((tools.get_cifar10, "train.rec"), (tools.get_mnist_pkl, "mnist.pkl.gz")):
        with pytest.raises(mx.MXNetError, match=file):
            load()
    with pytest.raises(mx.MXNetError, match=r"net-symbol\.json"):
        tools.download_model("net")
    for name in ("net-symbol.json", "net-0000.params"):
        (tmp_path / name).touch()
    assert tools.download_model("net") == ("net", 0)
    assert tools.get_im2rec_path("NOWHERE").endswith("gnomon/commands/im2rec.py")


def test_cuda_is_refused_with_the_reason():
    with pytest.raises(mx.MXNetError, match=r"CUDA.*gnomon\.shadow.*CustomOp"):
        mx.rtc.CudaModule("__global__ void f() {}")
    with pytest.raises(mx.MXNetError, match="GPUs"):
        mx.rtc.CudaKernel(None, "f", [])
