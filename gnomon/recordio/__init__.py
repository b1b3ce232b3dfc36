"""RecordIO: files of records of any length, and the header that image records carry."""

from gnomon.recordio.file import MXIndexedRecordIO, MXRecordIO
from gnomon.recordio.header import IRHeader, pack, pack_img, unpack, unpack_img

__all__ = [
    "IRHeader",
    "MXIndexedRecordIO",
    "MXRecordIO",
    "pack",
    "pack_img",
    "unpack",
    "unpack_img",
]
