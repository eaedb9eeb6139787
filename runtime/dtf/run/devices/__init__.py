"""Devices beside the CPU: the seam behind which their arrays lie.

    backends      the Protocol of a backend, and the backends of this process
    host_memory   which arguments of ops stay in the host's memory on every device
    listing       the devices that a task has, from its configuration and the backends
    through_host  the CPU's kernels for nodes of another device, between two copies
    pytorch/      GPUs, by PyTorch
    fake          numpy behind an array type of its own: accelerators for tests, on any machine

A backend is one room: its arrays, its rows of the kernel table (`run.kernels`), and the five functions of
`backends.DeviceBackend`. Everything else asks for nothing but a device's type:

    place          which device types a node may be on, from the rows
    copies         the pass that inserts copies, where a value is wanted elsewhere than it is made
    resources      `Variable` asks its backend for storage
"""
