"""Unit tests in the style of TensorFlow's own, which pass on TensorFlow and on dtf alike.

Each module imports TensorFlow's modules by their historic names. `python tests/interop/unit_test_runner.py FOLDER`
runs them all under one runtime.
"""
