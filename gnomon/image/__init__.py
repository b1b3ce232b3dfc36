"""Images: reading, resizing, cropping, augmenters and an iterator over them."""

from gnomon.compatibility.absent import showing as _showing
from gnomon.image.augmenters import (
    Augmenter as Augmenter,
    BrightnessJitterAug as BrightnessJitterAug,
    CastAug as CastAug,
    CenterCropAug as CenterCropAug,
    ColorJitterAug as ColorJitterAug,
    ColorNormalizeAug as ColorNormalizeAug,
    ContrastJitterAug as ContrastJitterAug,
    CreateAugmenter as CreateAugmenter,
    ForceResizeAug as ForceResizeAug,
    HorizontalFlipAug as HorizontalFlipAug,
    HueJitterAug as HueJitterAug,
    LightingAug as LightingAug,
    RandomCropAug as RandomCropAug,
    RandomGrayAug as RandomGrayAug,
    RandomOrderAug as RandomOrderAug,
    RandomSizedCropAug as RandomSizedCropAug,
    ResizeAug as ResizeAug,
    SaturationJitterAug as SaturationJitterAug,
    SequentialAug as SequentialAug,
)
from gnomon.image.det_iterator import ImageDetIter as ImageDetIter
from gnomon.image.detection import (
    CreateDetAugmenter as CreateDetAugmenter,
    CreateMultiRandCropAugmenter as CreateMultiRandCropAugmenter,
    DetAugmenter as DetAugmenter,
    DetBorrowAug as DetBorrowAug,
    DetHorizontalFlipAug as DetHorizontalFlipAug,
    DetRandomCropAug as DetRandomCropAug,
    DetRandomPadAug as DetRandomPadAug,
    DetRandomSelectAug as DetRandomSelectAug,
)
from gnomon.image.functions import (
    _get_interp_method as _get_interp_method,
    center_crop as center_crop,
    color_normalize as color_normalize,
    copyMakeBorder as copyMakeBorder,
    fixed_crop as fixed_crop,
    imdecode as imdecode,
    imread as imread,
    imresize as imresize,
    random_crop as random_crop,
    random_size_crop as random_size_crop,
    resize_short as resize_short,
    scale_down as scale_down,
)
from gnomon.image.iterator import ImageIter as ImageIter
from gnomon.image.rotate import imrotate as imrotate, random_rotate as random_rotate

__getattr__, __dir__ = _showing(__name__)
