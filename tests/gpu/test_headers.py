"""The calls and numbers of NVIDIA's libraries stand in the code as in NVIDIA's headers."""

from __future__ import annotations

import ctypes

import pytest

from gnomon import dtype as dtypes
from gnomon.runtime.devices.cuda import cublas, cudnn, library
from tests.gpu import headers

KEPT = headers.kept()
KINDS = {**headers.SCALARS, "pointer": ctypes.c_void_p}


@pytest.mark.parametrize("name", headers.CALLS)
def test_arguments(name):
    text = ctypes.c_char_p  # a pointer as well
    given = [ctypes.c_void_p if kind is text else kind for kind in headers.CALLS[name]]
    assert given == [KINDS[kind] for kind in KEPT["calls"][name]]


def numbers(enum, prefix, names):
    found = KEPT["enums"][enum]
    return tuple(found[prefix + name] for name in names)


def test_numbers_of_cudnn():
    dtype = numbers("cudnnDataType_t", "CUDNN_DATA_", ("FLOAT", "DOUBLE", "HALF", "BFLOAT16"))
    assert dtype == (cudnn.SINGLE, cudnn.DOUBLE, cudnn.HALF, cudnn.BRAIN)
    math = numbers("cudnnMathType_t", "CUDNN_", ("DEFAULT_MATH", "TENSOR_OP_MATH", "FMA_MATH"))
    assert math == (cudnn.DEFAULT, cudnn.TENSOR_CORES, cudnn.FMA)
    orders = numbers("cudnnTensorFormat_t", "CUDNN_TENSOR_", ("NCHW", "NHWC"))
    assert orders == (cudnn.PLAIN, cudnn.LAST)
    assert numbers("cudnnConvolutionMode_t", "CUDNN_", ("CROSS_CORRELATION",)) == (
        cudnn.CORRELATION,
    )
    assert numbers("cudnnNanPropagation_t", "CUDNN_", ("PROPAGATE_NAN",)) == (cudnn.PROPAGATE,)
    modes = ("AVERAGE_COUNT_INCLUDE_PADDING", "AVERAGE_COUNT_EXCLUDE_PADDING")
    given = numbers("cudnnPoolingMode_t", "CUDNN_POOLING_", modes)
    assert given == (cudnn.COUNTED, cudnn.NOT_COUNTED)
    assert numbers("cudnnDeterminism_t", "CUDNN_", ("DETERMINISTIC",)) == (1,)
    statuses = KEPT["enums"]["cudnnStatus_t"]
    assert statuses["CUDNN_STATUS_SUCCESS"] == 0
    assert {n for n, v in statuses.items() if v in cudnn.NOT_SUPPORTED} == {
        n for n in statuses if n.startswith("CUDNN_STATUS_NOT_SUPPORTED")
    }


def test_float32_is_computed_in_float32():
    assert cudnn.KINDS[dtypes.float32] == (cudnn.SINGLE, cudnn.SINGLE, cudnn.FMA)


def test_numbers_of_cublas():
    dtype = numbers("cudaDataType", "CUDA_R_", ("16F", "16BF", "32F", "64F"))
    assert dtype == (cublas.HALF, cublas.BRAIN, cublas.SINGLE, cublas.DOUBLE)
    compute = numbers("cublasComputeType_t", "CUBLAS_COMPUTE_", ("32F", "64F"))
    assert compute == (cublas.IN_SINGLE, cublas.IN_DOUBLE)
    assert numbers("cublasOperation_t", "CUBLAS_OP_", ("N", "T")) == (0, 1)


@pytest.mark.parametrize("name", KEPT["structs"])
def test_a_structure(name):
    declared = [
        KINDS[kind] * int(count) if count else KINDS[kind]
        for kind, _, count in (field.partition(" * ") for field in KEPT["structs"][name])
    ]
    assert [kind for _, kind in cudnn.Performance._fields_] == declared
    assert len(KEPT["structs"]) == 3


def test_numbers_of_the_driver():
    (device,) = numbers("CUmemLocationType", "CU_MEM_LOCATION_TYPE_", ("DEVICE",))
    (access,) = numbers("CUmemAccess_flags", "CU_MEM_ACCESS_FLAGS_PROT_", ("READWRITE",))
    assert (device, access) == (library.DEVICE, library.READ_WRITE)
