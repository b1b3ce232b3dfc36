"""Profiles from the start: importing this begins one where the settings say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gnomon import config
from gnomon.base import Later

if TYPE_CHECKING:
    from gnomon.profiler import control
else:
    control = Later("gnomon.profiler.control")

if config.get("profiler_autostart"):
    control.begin()
