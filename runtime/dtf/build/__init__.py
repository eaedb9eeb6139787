"""The half that makes a GraphDef: graphs, ops, gradients and variables. Knows nothing of how one is run."""
