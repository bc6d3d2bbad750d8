"""Entries of the catalogue for methods of `methods/online_pixels.py`."""

from dmt.methods import online_pixels
from dmt.methods.method import Method

PIXEL_METHODS: tuple[Method, ...] = (
    Method(
        "classmix",
        "ClassMix",
        "half of the classes of an image, pasted onto another, learn the labels of the slow copy",
        "online",
        online_pixels.classmix,
        reference="Olsson et al., WACV 2021",
        serves=("pixels",),
        options=online_pixels.ClassMixOptions,
    ),
    Method(
        "augseg",
        "AugSeg",
        "pasted images learn the labels of the slow copy; those that it doubts get labeled patches",
        "online",
        online_pixels.augseg,
        reference="Zhao et al., CVPR 2023",
        serves=("pixels",),
        options=online_pixels.AugSegOptions,
    ),
    Method(
        "unimatch",
        "UniMatch",
        "two strong views, and the plain one with half of its features, learn the labels of the plain one",
        "online",
        online_pixels.unimatch,
        reference="Yang et al., CVPR 2023",
        serves=("pixels",),
        options=online_pixels.UniMatchOptions,
    ),
    Method(
        "unimatch-v2",
        "UniMatch V2",
        "two strong views, each without the features that the other keeps, learn the labels of the slow copy",
        "online",
        online_pixels.unimatch_v2,
        reference="Yang et al., TPAMI 2025",
        serves=("pixels",),
        options=online_pixels.UniMatchV2Options,
    ),
)
