"""tf.contrib.tensorboard.plugins.projector: the embeddings that TensorBoard shows, and the names of their rows.

    config = projector.ProjectorConfig()
    embedding = config.embeddings.add()
    embedding.tensor_name, embedding.metadata_path = "words", "words.tsv"
    projector.visualize_embeddings(tf.summary.FileWriter("logs"), config)

Owns the file projector_config.pbtxt, which it writes as text itself.
"""

from __future__ import annotations

import os
from typing import Any

import dtf as tf

__all__ = ["EmbeddingInfo", "ProjectorConfig", "SpriteMetadata", "visualize_embeddings"]


class _List(list[Any]):
    """Entries of one kind, made by `add`."""

    def __init__(self, kind: type) -> None:
        super().__init__()
        self._kind = kind

    def add(self, **values: Any) -> Any:
        """A new entry."""
        self.append(self._kind(**values))
        return self[-1]


class SpriteMetadata:
    """An image of many small ones.

    Attributes:
      image_path: its file.
      single_image_dim: width and height of a small one.
    """

    def __init__(self, image_path: str = "", single_image_dim: Any = ()) -> None:
        self.image_path = image_path
        self.single_image_dim = list(single_image_dim)

    def lines(self) -> list[str]:
        """The message as text."""
        sizes = [f"single_image_dim: {size}" for size in self.single_image_dim]
        return [*_texts(self, "image_path"), *sizes]


class EmbeddingInfo:
    """One embedding.

    Attributes:
      tensor_name: the variable; tensor_path: or a file of its values.
      metadata_path: a file with a line for each row; bookmarks_path: of bookmarks.
      tensor_shape: rows and columns of a sprite or metadata file.
      sprite: images of the rows.
    """

    def __init__(
        self, tensor_name: str = "", metadata_path: str = "", bookmarks_path: str = "", tensor_path: str = "",
        tensor_shape: Any = (),
    ) -> None:  # fmt: skip
        self.tensor_name, self.metadata_path = tensor_name, metadata_path
        self.bookmarks_path, self.tensor_path = bookmarks_path, tensor_path
        self.tensor_shape = list(tensor_shape)
        self.sprite = SpriteMetadata()

    def lines(self) -> list[str]:
        """The message as text."""
        found = _texts(self, "tensor_name", "metadata_path", "bookmarks_path")
        found += [f"tensor_shape: {size}" for size in self.tensor_shape]
        sprite = self.sprite.lines()
        if sprite:
            found += ["sprite {", *(f"  {line}" for line in sprite), "}"]
        return found + _texts(self, "tensor_path")


class ProjectorConfig:
    """All embeddings of a folder.

    Attributes:
      embeddings: a list with `add`.
      model_checkpoint_path: the checkpoint; the folder's last one by default.
    """

    def __init__(self, model_checkpoint_path: str = "") -> None:
        self.model_checkpoint_path = model_checkpoint_path
        self.embeddings = _List(EmbeddingInfo)

    def __str__(self) -> str:
        lines = _texts(self, "model_checkpoint_path")
        for embedding in self.embeddings:
            lines += ["embeddings {", *(f"  {line}" for line in embedding.lines()), "}"]
        return "".join(f"{line}\n" for line in lines)


def _texts(message: Any, *names: str) -> list[str]:
    escaped = {name: getattr(message, name).replace("\\", "\\\\").replace('"', '\\"') for name in names}
    return [f'{name}: "{value}"' for name, value in escaped.items() if value]


def visualize_embeddings(summary_writer: Any, config: ProjectorConfig) -> None:
    """Writes projector_config.pbtxt into the folder of a writer, or into a folder.

    Raises:
      ValueError: the writer has no folder.
    """
    folder = summary_writer if isinstance(summary_writer, str) else summary_writer.get_logdir()
    if not folder:
        raise ValueError("Expected a writer with a logdir")
    with tf.gfile.GFile(os.path.join(folder, "projector_config.pbtxt"), "w") as file:
        file.write(str(config))
