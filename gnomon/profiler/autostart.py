"""Profiles from the start: importing this begins one where the settings say so."""

from __future__ import annotations

from gnomon import config
from gnomon.profiler.control import begin

if config.get("profiler_autostart"):
    begin()
