"""Names of TensorFlow's own modules that programs import and no public namespace has: one module here for each."""
