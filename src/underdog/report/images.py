"""A chart as a picture in a file: SVG or PNG, made by vl-convert without a browser or network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal
from xml.sax.saxutils import quoteattr

from underdog.errors import MissingPackageError
from underdog.report.charts.theme import config

Format = Literal["svg", "png"]

SHARPNESS = 2.0  # pixels of a PNG for each pixel of the chart, for fine screens and print


def image(
    spec: Mapping[str, Any], format: Format, *, width: int = 800, dark: bool = False
) -> bytes:
    """The picture of a chart.

    Args:
        spec: of ``underdog.report.charts``.
        format: ``svg``, UTF-8, with its text as text and the description as its label; or
            ``png``, of twice the width in pixels.
        width: of the whole picture, in CSS pixels.
        dark: light text on dark paper.

    Raises:
        MissingPackageError: vl-convert-python is not installed.
    """
    try:
        import vl_convert
    except ImportError as error:
        what = f"a chart as {format.upper()}"
        raise MissingPackageError(what, "vl-convert-python", "report") from error
    fixed = {**spec, "width": width}
    look = config(dark)
    if format == "svg":
        svg: str = vl_convert.vegalite_to_svg(fixed, config=look, allowed_base_urls=[])
        said = quoteattr(str(spec.get("description", "")))
        return svg.replace("<svg ", f'<svg role="img" aria-label={said} ', 1).encode()
    png: bytes = vl_convert.vegalite_to_png(
        fixed, scale=SHARPNESS, config=look, allowed_base_urls=[]
    )
    return png
