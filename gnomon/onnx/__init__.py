"""`mx.onnx`: networks written as ONNX files, and read from them.

>>> import gnomon as mx
>>> "Convolution" in mx.onnx.get_operator_support()
True
"""

from gnomon.compatibility.absent import finding
from gnomon.onnx.export import export_model
from gnomon.onnx.importer import get_model_metadata, import_model, import_to_gluon
from gnomon.onnx.support import get_operator_support

__all__ = [
    "export_model",
    "get_model_metadata",
    "get_operator_support",
    "import_model",
    "import_to_gluon",
]

__getattr__, __dir__ = finding("gnomon.onnx", __all__)
