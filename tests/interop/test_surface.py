"""The page of the public surface must say what is there."""

from __future__ import annotations

import operator

import pytest

import dtf
from tests.interop import surface, surface_page
from tests.interop.tensorflow_process import needs_tensorflow

pytestmark = needs_tensorflow


def test_the_page_of_the_surface_is_true() -> None:
    wanted = surface_page.wanted()
    text = surface_page.page(surface.differences(wanted, surface_page.found(dtf, wanted)))
    assert surface.PAGE.read_text(encoding="utf-8") == text, "run: python -m tests.interop.surface"


def test_a_name_left_out_says_what_to_use_instead() -> None:
    wanted = surface_page.wanted()
    for module, each in surface.differences(wanted, surface_page.found(dtf, wanted)).items():
        for name in each["left out"]:
            full = f"{module}.{name}" if module else name
            with pytest.raises(AttributeError, match=r"^tf\.[\w.]+: \w+"):
                operator.attrgetter(full)(dtf)
