"""The half that runs a GraphDef: masters, workers, executors and kernels. Knows nothing of how one was made."""
