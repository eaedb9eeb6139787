"""Kernels of connectionist temporal classification: the loss with its gradient, and decoding by the likeliest classes.

Source: Graves et al., "Connectionist temporal classification" (2006). Everything is in logarithms, for all sequences
of a batch at once.
"""

from __future__ import annotations

import itertools

import numpy as np

from dtf.run.kernels import Function, KernelNode, kernel
from dtf.run.kernels.arguments import invalid, room
from dtf.run.value_types import Array
from dtf.wire import errors


@kernel("CTCLoss")
def _(node: KernelNode) -> Function:
    collapse, merge = node.attr("preprocess_collapse_repeated"), node.attr("ctc_merge_repeated")
    ignore_longer = node.attr("ignore_longer_outputs_than_inputs")

    def ctc_loss(
        inputs: np.ndarray, label_indices: np.ndarray, label_values: np.ndarray, lengths: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if inputs.ndim != 3:
            raise invalid(f"inputs is not a 3-Tensor, got shape {list(inputs.shape)}")
        steps, batch, classes = inputs.shape
        if lengths.shape != (batch,):
            raise invalid(
                f"len(sequence_length) != batch_size.  len(sequence_length): {lengths.size} batch_size: {batch}"
            )
        if lengths.size and (lengths.max() > steps or lengths.min() < 0):
            raise invalid(f"sequence_length(b) must be within [0, {steps}]")
        blank = classes - 1
        labels = _labels(label_indices, label_values, batch, collapse)
        for row, values in enumerate(labels):
            if any(value < 0 for value in values):
                raise invalid(f"All labels must be nonnegative integers, batch: {row} labels: {values}")
            # From the first label that stands for no class on they are padding.
            labels[row] = list(itertools.takewhile(lambda value: value < blank, values))
        needed = [_needed(values, merge) for values in labels]
        used = lengths.astype(np.int64)
        for row, count in enumerate(needed):
            if count > used[row]:
                if not ignore_longer:
                    raise invalid(
                        f"Not enough time for target transition sequence (required: {count}, available: {used[row]}) "
                        f"in batch {row}. You can turn this error into a warning by using the flag "
                        "ignore_longer_outputs_than_inputs"
                    )
                used[row] = 0
        loss, gradient = _loss(inputs.astype(np.float64), labels, used, blank, merge)
        return loss.astype(inputs.dtype), gradient.astype(inputs.dtype)

    return ctc_loss


def _labels(indices: np.ndarray, values: np.ndarray, batch: int, collapse: bool) -> list[list[int]]:
    labels: list[list[int]] = [[] for _ in range(batch)]
    for (row, column), value in zip(indices.tolist(), values.tolist(), strict=True):
        if column < 0:
            raise invalid(f"label SparseTensor is not valid: index [{row},{column}] is out of bounds")
        if not 0 <= row < batch:
            raise invalid(f"labels batch index must be between 0 and {batch} but saw: {row}")
        if not (collapse and labels[row] and labels[row][-1] == value):
            labels[row].append(value)
    return labels


def _needed(values: list[int], merge: bool) -> int:
    """The least number of steps for these labels: a blank must stand between two that are the same."""
    repeated = sum(first == second for first, second in zip(values[:-1], values[1:], strict=True))
    return len(values) + (repeated if merge else 0)


def _loss(
    inputs: np.ndarray, labels: list[list[int]], lengths: np.ndarray, blank: int, merge: bool
) -> tuple[np.ndarray, np.ndarray]:
    """(loss [batch], its gradient by the inputs [steps, batch, classes]); both 0 where the length is 0."""
    steps, batch, classes = inputs.shape
    scores = inputs - inputs.max(2, keepdims=True, initial=-np.inf)
    scores = scores - np.log(np.exp(scores).sum(2, keepdims=True))
    longest = 2 * max(map(len, labels), default=0) + 1
    path = np.full(room((batch, longest), np.int64), blank)
    for row, values in enumerate(labels):
        path[row, 1 : 2 * len(values) : 2] = values
    sizes = np.array([2 * len(values) + 1 for values in labels])
    inside = np.arange(longest) < sizes[:, None]
    stays = inside & ((path == blank) | merge)
    skips = np.zeros_like(inside)
    skips[:, 2:] = inside[:, 2:] & (path[:, 2:] != blank) & ((path[:, 2:] != path[:, :-2]) | (not merge))
    rows = np.arange(batch)[:, None]

    def shifted(values: np.ndarray, by: int) -> np.ndarray:
        out = np.full_like(values, -np.inf)
        if by > 0:
            out[:, by:] = values[:, :-by]
        else:
            out[:, :by] = values[:, -by:]
        return out

    room((8, steps, batch, longest), np.float64)  # alpha and beta, and what they are multiplied and added with
    alpha = np.full((steps, batch, longest), -np.inf)
    beta = np.full((steps, batch, longest), -np.inf)
    for at in range(steps):
        if at == 0:
            reached = np.where((np.arange(longest) < 2) & inside, 0.0, -np.inf)
        else:
            before = alpha[at - 1]
            reached = np.logaddexp(np.where(stays, before, -np.inf), shifted(before, 1))
            reached = np.where(inside, np.logaddexp(reached, np.where(skips, shifted(before, 2), -np.inf)), -np.inf)
        alpha[at] = reached + scores[at][rows, path]
    last = (np.arange(longest) >= sizes[:, None] - 2) & inside
    for at in reversed(range(steps)):
        if at + 1 < steps:
            after = beta[at + 1] + scores[at + 1][rows, path]
            going = np.logaddexp(np.where(stays, after, -np.inf), shifted(after, -1))
            skipping = np.where(skips, after, -np.inf)
            beta[at] = np.where(inside, np.logaddexp(going, shifted(skipping, -2)), -np.inf)
        ends = (lengths == at + 1)[:, None]
        beta[at] = np.where(ends, np.where(last, 0.0, -np.inf), beta[at])
    gradient = np.zeros(inputs.shape)
    if not steps or not batch:
        return np.zeros(batch), gradient
    total = np.logaddexp.reduce(alpha[0] + beta[0], axis=1)
    possible = np.isfinite(total) & (lengths > 0)
    posterior = np.zeros(inputs.shape)
    share = np.exp(alpha + beta - np.where(possible, total, 0)[:, None])
    where = (np.arange(steps)[:, None, None], rows[None], path[None])
    np.add.at(posterior, where, share)
    counted = (np.arange(steps)[:, None] < lengths) & possible
    gradient = np.where(counted[..., None], np.exp(scores) - posterior, 0)
    return np.where(lengths > 0, -total, 0), gradient


def _checked(inputs: Array, lengths: Array) -> tuple[int, int, int]:
    """(steps, batch, classes) of a decoder's arguments."""
    if inputs.ndim != 3 or not inputs.size:
        raise invalid(f"inputs must be a 3-Tensor that is not empty, got shape {list(inputs.shape)}")
    if lengths.ndim != 1:
        raise invalid(f"sequence_length is not a vector, got shape {list(lengths.shape)}")
    steps, batch, classes = inputs.shape
    if lengths.shape != (batch,) or lengths.max() > steps:
        raise errors.FailedPreconditionError.of(
            f"sequence_length must be [{batch}] and not above {steps}, got {lengths}"
        )
    return steps, batch, classes


@kernel("CTCGreedyDecoder")
def _(node: KernelNode) -> Function:
    merge, blank_index = node.attr("merge_repeated"), node.attr("blank_index")

    def decode(inputs: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
        steps, batch, classes = _checked(inputs, lengths)
        blank = blank_index + classes if blank_index < 0 else blank_index
        best = inputs.argmax(2)
        valid = np.arange(steps)[:, None] < lengths
        kept = valid & (best != blank)
        if merge:
            kept[1:] &= best[1:] != best[:-1]
        counts = kept.sum(0)
        batches, times = np.nonzero(kept.T)
        positions = (np.cumsum(kept, 0) - 1).T[batches, times]
        indices = np.stack([batches, positions], 1).astype(np.int64)
        values = best.T[batches, times].astype(np.int64)
        shape = np.array([batch, counts.max(initial=0)], np.int64)
        score = -np.where(valid, inputs.max(2), 0).sum(0)
        return indices, values, shape, score[:, None].astype(inputs.dtype)

    return decode


@kernel("CTCBeamSearchDecoder")
def _(node: KernelNode) -> Function:
    width, paths, merge = node.attr("beam_width"), node.attr("top_paths"), node.attr("merge_repeated")

    def decode(inputs: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
        _, batch, _ = _checked(inputs, lengths)
        if paths > width:
            raise invalid("requested more paths than the beam width.")
        found: list[list[list[int]]] = [[] for _ in range(paths)]
        scores = np.zeros(room((batch, paths), inputs.dtype), inputs.dtype)
        for row, length in enumerate(lengths.tolist()):
            best = _best_paths(inputs[:length, row].astype(np.float64), width)[:paths]
            if len(best) < paths:
                raise invalid("Less leaves in the beam search than requested.")
            for rank, (path, score) in enumerate(best):
                kept = [label for at, label in enumerate(path) if not (merge and at and label == path[at - 1])]
                found[rank].append(kept)
                scores[row, rank] = score
        made = [_sparse(sequences) for sequences in found]
        return (*(part for parts in zip(*made, strict=True) for part in parts), scores)

    return decode


def _best_paths(logits: np.ndarray, width: int) -> list[tuple[list[int], float]]:
    """The likeliest sequences of labels of one example and their logarithmic probabilities, best first.

    A beam holds `width` prefixes. A prefix is a number; `tree` knows its parent and last label. Of each two
    probabilities are kept: that it ends in a blank, and that it ends in its last label.
    """
    blank = logits.shape[1] - 1
    tree: list[tuple[int, int]] = [(-1, -1)]
    children: dict[tuple[int, int], int] = {}
    nodes, with_blank, with_label = [0], np.zeros(1), np.full(1, -np.inf)
    for scores in logits:
        scores = scores - scores.max()
        scores = scores - np.log(np.exp(scores).sum())
        place = {node: at for at, node in enumerate(nodes)}
        last = np.array([tree[node][1] for node in nodes])
        total = np.logaddexp(with_blank, with_label)
        room((8, len(nodes), blank + 1), np.float64)
        # A label after itself is a new one only behind a blank.
        grown = np.where(np.arange(blank) == last[:, None], with_blank[:, None], total[:, None]) + scores[:blank]
        stay_blank = total + scores[blank]
        stay_label = np.where(last >= 0, with_label + scores[last], -np.inf)
        for at, node in enumerate(nodes):
            parent = place.get(tree[node][0])
            if parent is not None:  # what the parent grows into is this prefix
                stay_label[at] = np.logaddexp(stay_label[at], grown[parent, last[at]])
                grown[parent, last[at]] = -np.inf
        candidates = np.concatenate([np.logaddexp(stay_blank, stay_label), grown.ravel()])
        chosen = np.argsort(-candidates, kind="stable")[:width]
        chosen = chosen[candidates[chosen] > -np.inf]
        next_nodes, next_blank, next_label = [], [], []
        for index in chosen.tolist():
            if index < len(nodes):
                next_nodes.append(nodes[index])
                next_blank.append(stay_blank[index])
                next_label.append(stay_label[index])
                continue
            key = (nodes[(index - len(nodes)) // blank], (index - len(nodes)) % blank)
            if key not in children:
                children[key] = len(tree)
                tree.append(key)
            next_nodes.append(children[key])
            next_blank.append(-np.inf)
            next_label.append(candidates[index])
        nodes, with_blank, with_label = next_nodes, np.array(next_blank), np.array(next_label)

    def path_to(node: int) -> list[int]:
        labels = []
        while node:
            node, label = tree[node]
            labels.append(label)
        return labels[::-1]

    return [
        (path_to(node), score) for node, score in zip(nodes, np.logaddexp(with_blank, with_label).tolist(), strict=True)
    ]


def _sparse(sequences: list[list[int]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    indices = [(row, at) for row, labels in enumerate(sequences) for at in range(len(labels))]
    values = [label for labels in sequences for label in labels]
    shape = [len(sequences), max(map(len, sequences), default=0)]
    return np.array(indices, np.int64).reshape(-1, 2), np.array(values, np.int64), np.array(shape, np.int64)
