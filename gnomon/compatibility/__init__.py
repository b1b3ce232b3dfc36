"""What programs written for MXNet, NumPy 1 and older Pythons expect to find."""
