"""Libraries: arithmetic and formats that kernels use and that know nothing of steps."""
