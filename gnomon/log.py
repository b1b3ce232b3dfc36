"""`mx.log`: loggers whose lines begin with level, time and place, in colour on a terminal."""

from __future__ import annotations

import logging
import sys
from typing import ClassVar

CRITICAL = logging.CRITICAL
ERROR = logging.ERROR
WARNING = logging.WARNING
INFO = logging.INFO
DEBUG = logging.DEBUG
NOTSET = logging.NOTSET

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "get_logger"]


class _Formatter(logging.Formatter):
    """`W1123 03:17:34 18600 file.py:function:20] message`."""

    COLOURS: ClassVar = {WARNING: "\x1b[31m", ERROR: "\x1b[31m", CRITICAL: "\x1b[31m"}

    def __init__(self, colored: bool) -> None:
        super().__init__(datefmt="%m%d %H:%M:%S")
        self._colored = colored

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        time = self.formatTime(record, self.datefmt)
        place = f"{record.pathname}:{record.funcName}:{record.lineno}"
        head = f"{record.levelname[0]}{time} {record.process} {place}]"
        if self._colored:
            head = f"{self.COLOURS.get(record.levelno, chr(27) + '[32m')}{head}\x1b[0m"
        self._style._fmt = head.replace("%", "%%") + " %(message)s"
        return super().format(record)


def get_logger(
    name: str | None = None,
    filename: str | None = None,
    filemode: str | None = None,
    level: int = WARNING,
) -> logging.Logger:
    """The logger `name`, set up once: to `filename` (mode `a` by default), else to stderr.

    >>> get_logger("training", level=INFO).level == INFO
    True
    """
    logger = logging.getLogger(name)
    if name is None or getattr(logger, "_gnomon_ready", False):
        return logger
    handler: logging.Handler
    if filename:
        handler = logging.FileHandler(filename, filemode or "a")
        handler.setFormatter(_Formatter(colored=False))
    else:
        handler = logging.StreamHandler()
        handler.setFormatter(_Formatter(colored=sys.stderr.isatty()))
    logger.addHandler(handler)
    logger.setLevel(level)
    logger._gnomon_ready = True  # type: ignore[attr-defined]
    return logger


getLogger = get_logger
