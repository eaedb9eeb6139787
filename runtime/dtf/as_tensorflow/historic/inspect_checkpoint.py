"""tensorflow.python.tools.inspect_checkpoint: prints the contents of a checkpoint."""

from __future__ import annotations

from dtf.train.checkpoint_utils import NewCheckpointReader

__all__ = ["print_tensors_in_checkpoint_file"]


def print_tensors_in_checkpoint_file(
    file_name: str, tensor_name: str = "", all_tensors: bool = False, all_tensor_names: bool = False
) -> None:
    """Prints one tensor, all of them, or names, dtypes and shapes.

    Args:
      tensor_name: the tensor to print; "" with `all_tensors`, or for the names alone.
    """
    reader = NewCheckpointReader(file_name)
    names = reader.get_variable_to_shape_map()
    if not tensor_name and not all_tensors:
        for name, dtype in sorted(reader.get_variable_to_dtype_map().items()):
            print(f"{name} ({dtype.name}) {list(names[name])}")
        return
    for name in sorted(names) if all_tensors else [tensor_name]:
        print(f"tensor_name:  {name}")
        print(reader.get_tensor(name))
