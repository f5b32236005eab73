"""Resize an image file: work for the CPU, so a plain function that runs in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PIL import Image, UnidentifiedImageError

from jobq.registry import Permanent


@dataclass(frozen=True, slots=True)
class ResizeImage:
    """An image, the file for the resized one, and its maximum size.

    Args:
        source: path of an image file that exists.
        target: path of the file to write; its extension determines the format.
        width: maximum pixels.
        height: maximum pixels.
    """

    source: str
    target: str
    width: int
    height: int


def resize_image(payload: ResizeImage) -> dict[str, int | str]:
    """Fit an image into a box, keeping its proportions.

    A second run writes the same file again.

    Raises:
        Permanent: the source is missing or not an image, or the box is empty.
    """
    if payload.width < 1 or payload.height < 1:
        raise Permanent("EMPTY_BOX", "width and height must be at least 1")
    try:
        with Image.open(payload.source) as image:
            image.thumbnail((payload.width, payload.height))
            image.save(payload.target)
            width, height = image.size
    except FileNotFoundError as error:
        raise Permanent("FILE_NOT_FOUND", str(error)) from error
    except UnidentifiedImageError as error:
        raise Permanent("NOT_AN_IMAGE", str(error)) from error
    size = Path(payload.target).stat().st_size
    return {"target": payload.target, "width": width, "height": height, "bytes": size}
