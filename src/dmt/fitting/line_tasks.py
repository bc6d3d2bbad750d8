"""The task as each line of nets sees it: with a frozen encoder, as the features that this encoder gives."""

from dataclasses import dataclass, replace

from dmt import run_files
from dmt.data.folders.photo_options import PhotoOptions
from dmt.errors import ConfigError
from dmt.fitting.stage_nets import StageNets
from dmt.models import build, names
from dmt.tasks.base import Task
from dmt.tasks.classification import Classification
from dmt.tasks.features import FeatureTask
from dmt.training import encoding
from dmt.training.encoding import Encode, FeatureFile

SETS = ("labeled", "unlabeled", "validation", "test")


@dataclass(frozen=True)
class LineTasks:
    """Computes features when they are first asked for."""

    nets: StageNets

    def of(self, task: Task, line: str) -> Task:
        """The task for the nets of a line."""
        config, conditions = self.nets.config, self.nets.conditions
        data, net = config.data, config.net_of(line)
        if not (config.stores_features(line) and isinstance(data, PhotoOptions) and isinstance(task, Classification)):
            return task
        spec = task.net_spec(net)
        key = f"{net} {self.nets.starts.digests[line]} {spec.shape}"
        file = FeatureFile(self.nets.folder.path / run_files.CACHE, key)
        total = sum(len(getattr(task, name)) for name in SETS)
        made: list[Encode] = []

        def encode() -> Encode:
            if not made:
                whole = build.build(spec, seed=0)
                if self.nets.starts.fill(whole, spec, line) is None:
                    raise ConfigError(f"the encoder of net '{net}' does not learn; give --start timm, wheel or a file")
                made.append(encoding.encoder(whole, conditions.execution.device, spec.shape, total * data.stored_views))
            return made[0]

        sets, before = {}, 0
        for name in SETS:
            images = getattr(task, name)
            views = data.stored_views if name in ("labeled", "unlabeled") else 1  # the others are only looked at

            def tell(done: int, of: int, before: int = before) -> None:
                conditions.watcher.busy(f"features by {names.inner(net)}", before + done, total)
                if conditions.stop():
                    raise conditions.stop.error()

            features = file.compute(images, views, encode, tell)
            sets[name] = replace(images, images=features)
            before += len(images)
        fields = {name: getattr(task, name) for name in ("classes", "shape", "normalization", "policies")}
        return FeatureTask(**fields, **sets)
