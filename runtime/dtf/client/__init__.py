"""dtf.client: where programs look for `timeline` and `device_lib`, as in TensorFlow's tensorflow.python.client."""
