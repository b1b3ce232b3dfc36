"""Devices, and pools of their memory: each device is one file, found by its name."""
