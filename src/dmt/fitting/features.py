"""Conversion of a task to stored features of frozen encoders, computed once for every image."""

from dataclasses import dataclass, replace

import torch

from dmt.config import Config
from dmt.data.folders.photo_options import PhotoOptions
from dmt.errors import ConfigError
from dmt.models import build, names
from dmt.models.build import NetSpec
from dmt.models.frozen import Frozen
from dmt.runs.progress import Watcher
from dmt.runs.starting import Starts
from dmt.runs.stopping import Stop
from dmt.tasks.base import Task
from dmt.tasks.classification import Classification
from dmt.tasks.features import FeatureTask
from dmt.training import encoding
from dmt.training.encoding import Encode, Encoder, FeatureFolder

SETS = ("labeled", "unlabeled", "validation", "test")


@dataclass(frozen=True)
class FeatureMaker:
    """Computes the features that a run needs, and stores them in a folder."""

    config: Config
    starts: Starts
    folder: FeatureFolder
    device: torch.device
    watcher: Watcher
    stop: Stop

    def of(self, task: Task) -> Task:
        """Return the task as features of all encoders, or unchanged if nets process images in every step."""
        config, data = self.config, self.config.data
        lines = "AB" if config.recipe.shape == "pair" else "A"
        nets: dict[str, str] = {}  # net -> the first line with this net
        for line in lines:
            nets.setdefault(config.net_of(line), line)
        alike = all(self.starts.digests[line] == self.starts.digests[nets[config.net_of(line)]] for line in lines)
        if not (isinstance(data, PhotoOptions) and isinstance(task, Classification) and alike):
            return task
        if not all(map(config.stores_features, lines)):
            return task
        photos = sum(len(getattr(task, name)) for name in SETS)
        encoders = [self._encoder(task.net_spec(net), nets[net], photos * data.stored_views) for net in nets]
        offsets, offset = {}, 0
        for net, encoder in zip(nets, encoders, strict=True):
            offsets[net] = offset
            offset += encoder.width
        sets, before = {}, 0
        for name in SETS:
            images = getattr(task, name)
            views = data.stored_views if name in ("labeled", "unlabeled") else 1  # the others are only scored

            def tell(done: int, of: int, before: int = before) -> None:
                self.watcher.busy("features of the photos", before + done, photos * len(encoders))
                if self.stop():
                    raise self.stop.error()

            features = self.folder.compute(images, views, encoders, tell)
            sets[name] = replace(images, images=features)
            before += len(images) * len(encoders)
        return FeatureTask(task.classes, task.shape, task.normalization, task.policies, **sets, offsets=offsets)

    def _encoder(self, spec: NetSpec, line: str, looks: int) -> Encoder:
        net = build.build(spec, seed=0)
        body = net.body
        assert isinstance(body, Frozen)
        made: list[Encode] = []

        def make() -> Encode:
            if not made:
                if self.starts.fill(net, spec, line) is None:
                    raise ConfigError(
                        f"the encoder of net '{spec.name}' is frozen and needs pretrained parameters; "
                        f"give --start timm, wheel or a file"
                    )
                self.watcher.note(f"{names.inner(spec.name)} computes features of the photos")
                made.append(encoding.encoder(net, self.device, spec.shape, looks))
            return made[0]

        key = f"{spec.name} {self.starts.digests[line]} {spec.shape}"
        return Encoder(key, body.features, make, self.device)
