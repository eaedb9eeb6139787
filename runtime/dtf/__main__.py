"""python -m dtf trainer.py ARGS: runs a TensorFlow 1.x program, whose `import tensorflow` gives dtf."""

import sys

from dtf.as_tensorflow import program

if __name__ == "__main__":
    program.main(sys.argv[1:])
