"""`mx.contrib.onnx`: the place where MXNet 1.x has its readers and writers of ONNX files."""

from gnomon.compatibility.absent import finding
from gnomon.onnx import export_model, get_model_metadata, import_model, import_to_gluon

__all__ = ["export_model", "get_model_metadata", "import_model", "import_to_gluon"]

__getattr__, __dir__ = finding("gnomon.contrib.onnx", __all__)
