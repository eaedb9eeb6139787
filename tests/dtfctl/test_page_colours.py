"""The colours of the page's curves: seen on their background, and told apart with each kind of colour blindness."""

from __future__ import annotations

import itertools
import math
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "dtfctl" / "ui" / "page"
Colour = tuple[float, float, float]
VISIONS = {
    "usual": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "no green": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "no blue": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
"""How linear RGB is seen. Source: Machado, Oliveira and Fernandes 2009, severity 1."""


def linear(text: str) -> Colour:
    """Of #rrggbb. Source: IEC 61966-2-1 (sRGB)."""
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
        for part in (int(text[at : at + 2], 16) / 255 for at in (1, 3, 5))
    )
    return red, green, blue


def product(one: Colour, other: Colour) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def contrast(one: str, other: str) -> float:
    """Source: WCAG 2.1, contrast ratio."""
    less, more = sorted(product(linear(each), (0.2126, 0.7152, 0.0722)) for each in (one, other))
    return (more + 0.05) / (less + 0.05)


def seen(text: str, vision: str) -> Colour:
    """Where a colour lies in a space whose distances are those that people see. Source: Ottosson 2020 (Oklab)."""
    red, green, blue = (max(0.0, product(row, linear(text))) for row in VISIONS[vision])
    long = (0.4122 * red + 0.5363 * green + 0.0514 * blue) ** (1 / 3)
    middle = (0.2119 * red + 0.6807 * green + 0.1074 * blue) ** (1 / 3)
    short = (0.0883 * red + 0.2817 * green + 0.6300 * blue) ** (1 / 3)
    return (
        0.2105 * long + 0.7936 * middle - 0.0041 * short,
        1.9780 * long - 2.4286 * middle + 0.4506 * short,
        0.0259 * long + 0.7828 * middle - 0.8087 * short,
    )


def colours(theme: str) -> list[str]:
    (found,) = re.findall(rf"^const {theme.upper()} = \[(.*)\];$", (PAGE / "format.js").read_text(), re.MULTILINE)
    return re.findall(r"#[0-9a-f]{6}", found)


def variable(theme: str, name: str) -> str:
    block = (PAGE / "style.css").read_text().split(":root")[1 if theme == "light" else 3]
    (found,) = re.findall(rf"--{name}: (#[0-9a-f]{{6}});", block)
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_each_line_and_mark_has_enough_contrast_to_its_card(theme):
    marks = [variable(theme, name) for name in ("bad", "accent")]
    assert min(contrast(each, variable(theme, "card")) for each in [*colours(theme), *marks]) >= 3


@pytest.mark.parametrize("vision", VISIONS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_two_colours_of_lines_look_alike(theme, vision):
    places = [seen(each, vision) for each in colours(theme)]
    assert len(places) == 6
    assert min(math.dist(one, other) for one, other in itertools.combinations(places, 2)) > 0.1
