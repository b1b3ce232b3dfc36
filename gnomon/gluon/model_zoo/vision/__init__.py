"""Networks that classify images: `get_model`, a class and a function for each kind.

There is a function for each network too, like `resnet18_v1(**kwargs)`.
"""

from gnomon.compatibility.absent import offering as _offering
from gnomon.gluon.model_zoo.vision.alexnet import *
from gnomon.gluon.model_zoo.vision.densenet import (
    DenseNet as DenseNet,
    get_densenet as get_densenet,
)
from gnomon.gluon.model_zoo.vision.inception import (
    Inception3 as Inception3,
    inception_v3 as inception_v3,
)
from gnomon.gluon.model_zoo.vision.mobilenet import (
    RELU6 as RELU6,
    LinearBottleneck as LinearBottleneck,
    MobileNet as MobileNet,
    MobileNetV2 as MobileNetV2,
    get_mobilenet as get_mobilenet,
    get_mobilenet_v2 as get_mobilenet_v2,
)
from gnomon.gluon.model_zoo.vision.names import (
    attributes as _attributes,
    get_model as get_model,
    listed as _listed,
)
from gnomon.gluon.model_zoo.vision.resnet import (
    BasicBlockV1 as BasicBlockV1,
    BasicBlockV2 as BasicBlockV2,
    BottleneckV1 as BottleneckV1,
    BottleneckV2 as BottleneckV2,
    ResNetV1 as ResNetV1,
    ResNetV2 as ResNetV2,
    get_resnet as get_resnet,
)
from gnomon.gluon.model_zoo.vision.squeezenet import (
    SqueezeNet as SqueezeNet,
    get_squeezenet as get_squeezenet,
)
from gnomon.gluon.model_zoo.vision.vgg import VGG as VGG, get_vgg as get_vgg

__getattr__, __dir__ = _offering(__name__, _attributes, _listed)
