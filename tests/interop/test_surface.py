"""The page of the public surface must say what is there."""

from __future__ import annotations

import dtf
from tests.interop import surface, surface_page
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow


def test_the_page_of_the_surface_is_true() -> None:
    wanted = surface_page.wanted()
    text = surface_page.page(surface.differences(wanted, surface_page.found(dtf, wanted)))
    assert surface.PAGE.read_text(encoding="utf-8") == text, "run: python -m tests.interop.surface"


def test_a_name_left_out_says_what_to_use_instead() -> None:
    for name in ("enable_eager_execution", "distribute", "load_op_library"):
        try:
            getattr(dtf, name)
        except AttributeError as error:
            assert str(error).startswith(f"tf.{name}: ")
        else:
            raise AssertionError(f"dtf.{name} is there")
