"""The public op functions, their shape rules and gradients, one module per family of ops."""
