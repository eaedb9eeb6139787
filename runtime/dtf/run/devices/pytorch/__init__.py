"""GPUs, by PyTorch: the arrays, the backend, and its rows of the kernel table.

    setting       which GPUs this process has, found without loading PyTorch
    arrays        TorchArray, and how values enter and leave it
    backend       TorchBackend: the `DeviceBackend`
    rows          how a function of torch tensors becomes a row of the kernel table
    rows_of_*     the functions, by family

The only room that imports torch, when the first GPU is asked for. The same code runs on torch's CPU tensors
(`DTF_GPU_BACKEND=torch-cpu:2`), which is how it is tested on machines without a GPU. An op without a function here is
computed by the CPU's kernel, between two copies (`devices.through_host`). So are arguments that a function refuses:
the CPU's kernel then raises the error, in TensorFlow's words.
"""
