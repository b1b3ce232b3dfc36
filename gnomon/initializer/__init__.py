"""Initial values of parameters, chosen by their names and attributes."""

from gnomon.initializer.base import InitDesc, Initializer, create, register
from gnomon.initializer.fill import Constant, Load, Mixed, One, Zero
from gnomon.initializer.sample import MSRAPrelu, Normal, Orthogonal, Uniform, Xavier
from gnomon.initializer.structured import Bilinear, LSTMBias

__all__ = [
    "Bilinear",
    "Constant",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "create",
    "register",
]
