"""Generated protobuf messages; protos/generate.py writes them."""
