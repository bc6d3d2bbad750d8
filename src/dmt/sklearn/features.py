"""Features of photos from a pretrained, frozen encoder, as input of any estimator."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted

from dmt.data.images import batches
from dmt.models import build, starts
from dmt.models.build import NetSpec
from dmt.runs import environment
from dmt.tasks import classification
from dmt.training import encoding
from dmt.types import IMAGENET


class FrozenFeatures(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features from a pretrained, frozen encoder: turns photos (n, H, W, 3) of dtype uint8 into rows (n, F).

    Nothing is learned, so it can be fitted to any photos.

    Parameters
    ----------
    encoder : str, default="tf_efficientnet_lite0"
        The encoder's name in timm. Parameters of this one and of ``tf_efficientnet_lite2`` come with every install.
    start : str, default="wheel"
        Source of its parameters, as for ``dmt fit --start``: "wheel", "timm" or a file.
    device : str, default="cpu"
        "cpu", "cuda", "cuda:N", or "auto" for a GPU if there is one.

    Attributes
    ----------
    shape_ : tuple of int
        Height, width and channels of the photos.
    """

    def __init__(self, encoder: str = "tf_efficientnet_lite0", start: str = "wheel", device: str = "cpu") -> None:
        self.encoder = encoder
        self.start = start
        self.device = device

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: N803  scikit-learn's name
        """Store the size of the photos."""
        self.shape_ = _photos(X).shape[1:]
        return self

    def transform(self, X: Any) -> npt.NDArray[np.float32]:  # noqa: N803
        """Compute the features of photos, of shape (n_samples, n_features)."""
        check_is_fitted(self)
        photos = _photos(X)
        if photos.shape[1:] != self.shape_:
            raise ValueError(f"X has photos of {photos.shape[1:]}, and {self.shape_} were fitted")
        height, width, channels = self.shape_
        spec = NetSpec(f"frozen:{self.encoder}", 1, (channels, height, width), IMAGENET)
        net = build.build(spec, seed=0)
        starts.load(net, spec, starts.resolve(self.start, spec.name))
        device = environment.pick_device(self.device)
        encode = encoding.encoder(net, device, spec.shape, len(photos))
        count = classification.images_per_forward((height, width), device)
        planes = torch.from_numpy(np.ascontiguousarray(photos.transpose(0, 3, 1, 2)))
        return torch.cat([encode(batches.scale(part)) for part in torch.split(planes, count)]).numpy()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags


def _photos(X: Any) -> npt.NDArray[np.uint8]:  # noqa: N803
    found: npt.NDArray[Any] = check_array(X, dtype=None, allow_nd=True, ensure_2d=False)
    if found.ndim != 4 or found.shape[3] != 3 or found.dtype != np.uint8:
        raise ValueError(f"X must be photos (n, H, W, 3) of bytes, not {found.dtype} {found.shape}")
    return found
