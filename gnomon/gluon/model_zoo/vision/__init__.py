"""Networks that classify images: `get_model`, a class and a function for each kind.

There is a function for each network too, like `resnet18_v1(**kwargs)`.
"""

from gnomon.gluon.model_zoo.vision.alexnet import AlexNet, alexnet
from gnomon.gluon.model_zoo.vision.densenet import DenseNet, get_densenet
from gnomon.gluon.model_zoo.vision.inception import Inception3, inception_v3
from gnomon.gluon.model_zoo.vision.mobilenet import (
    RELU6,
    LinearBottleneck,
    MobileNet,
    MobileNetV2,
    get_mobilenet,
    get_mobilenet_v2,
)
from gnomon.gluon.model_zoo.vision.names import FUNCTIONS, attributes, get_model, listed
from gnomon.gluon.model_zoo.vision.resnet import (
    BasicBlockV1,
    BasicBlockV2,
    BottleneckV1,
    BottleneckV2,
    ResNetV1,
    ResNetV2,
    get_resnet,
)
from gnomon.gluon.model_zoo.vision.squeezenet import SqueezeNet, get_squeezenet
from gnomon.gluon.model_zoo.vision.vgg import VGG, get_vgg

__all__ = [  # noqa: PLE0604
    "RELU6",
    "VGG",
    "AlexNet",
    "BasicBlockV1",
    "BasicBlockV2",
    "BottleneckV1",
    "BottleneckV2",
    "DenseNet",
    "Inception3",
    "LinearBottleneck",
    "MobileNet",
    "MobileNetV2",
    "ResNetV1",
    "ResNetV2",
    "SqueezeNet",
    "alexnet",
    "get_densenet",
    "get_mobilenet",
    "get_mobilenet_v2",
    "get_model",
    "get_resnet",
    "get_squeezenet",
    "get_vgg",
    "inception_v3",
    *FUNCTIONS,
]

__getattr__, __dir__ = attributes, listed
