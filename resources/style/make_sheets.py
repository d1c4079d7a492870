"""Put pictures of the window before and after onto one sheet a view: ``make_sheets.py BEFORE AFTER``.

Both are folders that ``resources/guide/make_pictures.py --wide`` filled, BEFORE by the script of an earlier commit; a
view of which BEFORE has no picture keeps its sheet.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

HERE = Path(__file__).parent / "pictures"
VIEWS = ("window", "layers", "plan", "sensitivity", "distributions", "pareto", "accuracy", "compare", "deploy")
SIZES = {"small": "1280 x 720", "large": "1920 x 1080", "wide": "2560 x 1440"}
WIDTH, GAP, LINE = 800, 8, 22
"""Pixels: the most of one picture, between two, and the line above a pair."""
QUALITY = 72


def main() -> None:
    """Read the command line and write a sheet for each view."""
    parser = argparse.ArgumentParser(description="Put pictures before and after side by side.")
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    options = parser.parse_args()
    for view in VIEWS:
        before, after = [*pairs(options.before, view, "before")], pairs(options.after, view, "after")
        if before:
            sheet([*before, *after]).save(HERE / f"{view}.webp", quality=QUALITY, method=6)


def pairs(folder: Path, view: str, when: str) -> Iterator[tuple[str, list[Image.Image]]]:
    """Yield for each size a line of text and the pictures, light and dark, that there are of a view."""
    for size, pixels in SIZES.items():
        files = [folder / f"{view}-{size}{theme}.png" for theme in ("", "-dark")]
        pictures = [fitted(Image.open(file)) for file in files if file.is_file()]
        if pictures:
            yield f"{view}, {when}, window of {pixels}", pictures


def fitted(picture: Image.Image) -> Image.Image:
    """Return a picture that is at most WIDTH wide."""
    ratio = min(WIDTH / picture.width, 1.0)
    return picture.convert("RGB").resize((round(picture.width * ratio), round(picture.height * ratio)))


def sheet(rows: list[tuple[str, list[Image.Image]]]) -> Image.Image:
    """Return the pictures below each other, light ones on the left."""
    heights = [max(each.height for each in pictures) for _, pictures in rows]
    made = Image.new("RGB", (2 * WIDTH + 3 * GAP, sum(heights) + (LINE + GAP) * len(rows)), "#8a929c")
    draw, font, top = ImageDraw.Draw(made), ImageFont.load_default(14), 0
    for (text, pictures), height in zip(rows, heights, strict=True):
        draw.text((GAP, top + 4), text, fill="#10141a", font=font)
        for place, each in enumerate(pictures):
            made.paste(each, (GAP + place * (WIDTH + GAP), top + LINE))
        top += LINE + height + GAP
    return made


if __name__ == "__main__":
    main()
