"""The half that makes a GraphDef: graphs, ops, gradients and variables. Does not know how a graph is run."""
