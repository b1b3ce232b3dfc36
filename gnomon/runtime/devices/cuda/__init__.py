"""NVIDIA GPUs: the driver's calls, real and simulated, and the device made of them."""
