"""TensorFlow 1.x's graph API and distributed runtime in Python, numpy and gRPC."""
