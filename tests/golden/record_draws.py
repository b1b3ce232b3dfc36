"""What `ImageRecordIter` draws: crops, shapes and colours, as numbers to compare."""

from __future__ import annotations

from typing import Any

import numpy as np

SIZE = 60, 90
AREA = {"random_resized_crop": True, "min_random_area": 0.2, "max_random_area": 0.7}
CASES: dict[str, dict[str, Any]] = {
    "crop": {"rand_crop": True, "rand_mirror": True},
    "side": {"rand_crop": True, "min_crop_size": 30, "max_crop_size": 80},
    "area": AREA,
    "area and ratio": {**AREA, "min_aspect_ratio": 0.6, "max_aspect_ratio": 1.6},
    "area and one ratio": {**AREA, "max_aspect_ratio": 0.4},
    "angle": {"max_rotate_angle": 20},
    "shear": {"max_shear_ratio": 0.3},
    "scale": {"min_random_scale": 0.8, "max_random_scale": 1.5},
    "ratio": {"min_aspect_ratio": 0.7, "max_aspect_ratio": 1.4},
    "one ratio": {"max_aspect_ratio": 0.3},
    "all shapes": {"max_rotate_angle": 20, "max_shear_ratio": 0.2, "max_aspect_ratio": 0.2,
                   "max_random_scale": 1.3, "rand_crop": True, "rand_mirror": True},
    "brightness": {"brightness": 0.4},
    "contrast": {"contrast": 0.4},
    "saturation": {"saturation": 0.4},
    "colours' saturation": {"random_s": 60},
    "all colours": {"brightness": 0.3, "contrast": 0.3, "saturation": 0.3},
    "noise": {"pca_noise": 0.4},
    "hue": {"random_h": 40},
    "lightness": {"random_l": 60},
    "hue, saturation and lightness": {"random_h": 20, "random_s": 40, "random_l": 40},
    "contrast of the batch": {"max_random_contrast": 0.3, "max_random_illumination": 20,
                              "mean_r": 100, "mean_g": 100, "mean_b": 100, "scale": 0.5},
    "interpolation": {"random_resized_crop": True, "min_random_area": 0.1,
                      "max_random_area": 0.1, "inter_method": 10},
}  # fmt: skip


def numbers(image: Any) -> list[float]:
    """What is compared of an image (channels, height, width)."""
    height, width = SIZE
    middle = [float(x[height // 2, width // 2]) for x in image]
    corners = [float(x[y, z]) for x in image[:2] for y in (0, -1) for z in (0, -1)]
    return [*middle, *corners, *(float(x.mean()) for x in image)]


def drawn(mx: Any, path: str, epochs: int, **options: Any) -> Any:
    """Rows of `numbers` from a record file of equal images."""
    it = mx.io.ImageRecordIter(
        path_imgrec=path,
        data_shape=(3, *SIZE),
        batch_size=50,
        label_width=12,
        preprocess_threads=2,
        **options,
    )
    rows = []
    for _ in range(epochs):
        it.reset()
        for batch in it:
            rows += [numbers(image) for image in batch.data[0].asnumpy()]
    return np.array(rows)


# what is not drawn: pixel for pixel the same
FIXED: dict[str, dict[str, Any]] = {
    "centre": {},
    "colours": {"mean_r": 120, "mean_g": 110, "mean_b": 100, "std_r": 2, "std_b": 3, "scale": 0.5},
    "mirror": {"mirror": True},
    "smaller edge": {"resize": 18},
    "larger edge": {"resize": 40},
    "nearest": {"resize": 19, "inter_method": 0},
    "cubic": {"resize": 19, "inter_method": 2},
    "areas": {"resize": 19, "inter_method": 3},
    "lanczos": {"resize": 19, "inter_method": 4},
    "what suits": {"resize": 19, "inter_method": 9},
    "enlarged": {"data_shape": (3, 35, 40)},
    "enlarged, cubic": {"data_shape": (3, 40, 35), "inter_method": 2},
    "padded": {"pad": 3, "fill_value": 9},
    "a square, resized": {"min_crop_size": 20, "max_crop_size": 20},
    "rotated": {"rotate": 30},
    "scaled": {"min_random_scale": 1.3, "max_random_scale": 1.3},
    "stretched": {"min_aspect_ratio": 1.3, "max_aspect_ratio": 1.3},
    "bounded": {"min_img_size": 20, "max_img_size": 25},
    "grey": {"data_shape": (1, 16, 16)},
    "bytes": {"kind": "ImageRecordUInt8Iter"},
    "signed bytes": {"kind": "ImageRecordInt8Iter", "mean_r": 120},
    "bytes by dtype": {"dtype": "uint8", "mean_r": 120, "scale": 0.5},
    "signed bytes by dtype": {"dtype": "int8", "mean_r": 120, "std_g": 0.3},
    "bytes, whatever dtype": {"kind": "ImageRecordUInt8Iter", "dtype": "int8"},
    "what suits both sides": {"data_shape": (3, 40, 50), "inter_method": 9},
    "what suits one side": {"data_shape": (3, 20, 34), "inter_method": 9},
    "what suits a scale": {"min_random_scale": 1.3, "max_random_scale": 1.3, "inter_method": 9},
    "all of the area": {"random_resized_crop": True},
    "too much of the area": {"random_resized_crop": True, "min_random_area": 0.99,
                             "max_random_area": 0.99},
    "a scale below 1": {"min_random_scale": 0.9, "max_random_scale": 0.9},
}  # fmt: skip


def photographs(cv2: Any) -> list[bytes]:
    """JPEG files of four images in different sizes."""
    rng = np.random.RandomState(0)
    files = []
    for height, width in ((24, 32), (32, 24), (31, 23), (26, 26)):
        small = rng.randint(0, 256, (6, 6, 3)).astype(np.uint8)
        image = cv2.resize(small, (width, height), interpolation=cv2.INTER_CUBIC)
        files.append(cv2.imencode(".jpg", image, [cv2.IMWRITE_JPEG_QUALITY, 90])[1].tobytes())
    return files


def batch(mx: Any, path: str, **options: Any) -> Any:
    """The images of all records in a file of four."""
    options = {"data_shape": (3, 16, 16), **options}
    kind = getattr(mx.io, options.pop("kind", "ImageRecordIter"))
    it = kind(path_imgrec=path, batch_size=4, preprocess_threads=1, **options)
    return next(iter(it)).data[0].asnumpy()


def pack(mx: Any, path: str, files: list[bytes]) -> None:
    """A record file of encoded images."""
    out = mx.recordio.MXRecordIO(path, "w")
    for k, data in enumerate(files):
        out.write(mx.recordio.pack((0, float(k), k, 0), data))
    out.close()
