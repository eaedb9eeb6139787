"""Every op must give TensorFlow's values, gradients and error codes, in every variant of its rows in the table.

What is compared, and how, is `tests.interop.differential`; what differs and why that is kept, `differential.known`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interop.differential.compare import Comparison, Runtimes
from tests.interop.differential.report import rows
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow

ROWS = rows()


@pytest.fixture(scope="module")
def runtimes() -> Iterator[Runtimes]:
    runtimes = Runtimes()
    yield runtimes
    runtimes.close()


@pytest.mark.parametrize("op", sorted(ROWS))
def test_an_op_gives_tensorflows_values_gradients_and_errors(op: str, runtimes: Runtimes) -> None:
    found = sum((runtimes.compare(row) for row in ROWS[op]), Comparison())
    print(f"{op}: {found.count} variants compared, of which TensorFlow refuses {found.refused}")
    assert not found.different, "\n".join(f"{variant}: {words}" for variant, words in found.different)
