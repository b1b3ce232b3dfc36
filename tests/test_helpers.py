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
    assert base.py_str(b"\xc3\xa9") == "é"
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
