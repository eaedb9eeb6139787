"""dtf.client: where programs look for `timeline`, as in TensorFlow's tensorflow.python.client."""
