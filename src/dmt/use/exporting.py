"""Export of a run's final model, as ONNX or as safetensors with a JSON card, after comparing it with the original."""

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from dmt import files, outputs, run_files, schemas
from dmt.data.folders import photo_files
from dmt.errors import ConfigError, RunError, unknown
from dmt.models import build
from dmt.models.build import NetSpec
from dmt.models.mean_of_nets import MeanOfNets
from dmt.results import reading
from dmt.runs.folder import Folder
from dmt.tasks import opening
from dmt.training import evidence_files
from dmt.types import PADDING, Normalization
from dmt.use import onnx_files, predict, predict_inputs, scoring
from dmt.use.scoring import Shipped
from dmt.version import VERSION

FORMATS = ("onnx", "safetensors")
TOLERANCE = 1e-4
"""Largest allowed difference between logits a and b, as |a − b| / max(1, |a|)."""

FEW, MANY = 8, 64  # images to compare on: of our own choice, and at most of those that a user gives
LARGEST = 768  # side in pixels of the corner that stands for a larger image, for segmentation
EMBEDDED = ("digits",)  # classification data that needs no folder; a segmentation run holds sample images


@dataclass(frozen=True)
class Exported:
    """Files that were written, and in words how the export compares with the original."""

    paths: tuple[Path, ...]
    summary: str


@dataclass(frozen=True)
class ExportOptions:
    """Which net of a run is exported, and on which images it is compared.

    Attributes:
        method, seed: the job to export of a run with several; by default the one that validation prefers.
        line: for a pair, "A", "B", or "both" as one; by default both, unless one is clearly better on validation.
        check: images and folders of images to compare ONNX and PyTorch on; by default those that `pictures` finds.
        data_folder: folder of the run's images, to compare on some of them.
    """

    method: str | None = None
    seed: int | None = None
    check: Sequence[Path] = ()
    data_folder: Path | None = None
    line: str | None = None


def export(
    run: str | Path,
    to: str,
    *,
    out: str | Path | None = None,
    options: ExportOptions | None = None,
    force: bool = False,
) -> Exported:
    """Write a run's final model to a file, which is not kept if it differs from the original.

    The final model is the net that validation prefers; for a pair, both nets in one file, as the mean of their
    probabilities.

    Args:
        run: a run folder.
        to: "onnx" or "safetensors".
        out: the file; ``RUN/export/<run name>.<format>`` by default.
        options: which net to export, and what to compare it on.
        force: overwrite existing files.
    """
    run, options = Path(run), options or ExportOptions()
    if to not in FORMATS:
        raise unknown("format", to, FORMATS)
    if to == "onnx":
        _require_packages()
    shipped = scoring.shipped_net(run, options.method, options.seed, torch.device("cpu"), options.line)
    path = _place(run, to, out, force)
    about = describe(shipped) | {"run": photo_files.shown(run.resolve().name)}
    if to == "onnx":
        images = pictures(run, shipped.spec, options.check, options.data_folder)
        exported = _write_onnx(shipped, about, path, images)
    else:
        exported = _write_safetensors(shipped, about | _origin(run, options), path)
    return exported if shipped.note is None else replace(exported, summary=f"{exported.summary}\nnote: {shipped.note}")


def load(path: str | Path) -> Shipped:
    """Load a net, or two as one, that was exported to safetensors, on the CPU; its card must lie beside the file."""
    path = Path(path).with_suffix(".safetensors")
    card_path = path.with_suffix(".json")
    for needed in (path, card_path):
        if not needed.is_file():
            raise RunError(f"there is no file {needed}; parameters and card must be in the same folder")
    try:
        card = files.read_json(card_path, schemas.CARD)
    except RunError as error:
        raise RunError(f"{card_path} is not a card of dmt export, or damaged; export the run again") from error
    spec, second = _spec(card["spec"]), _spec(card["second"]) if card.get("second") else None
    classes, palette = tuple(card["classes"]), tuple((red, green, blue) for red, green, blue in card["palette"])
    if card["sha256"] != hashlib.sha256(path.read_bytes()).hexdigest():
        raise RunError(f"{path} is damaged, or its card belongs to another net; export the run again")
    specs = {"A": spec} if second is None else {"A": spec, "B": second}
    nets = {line: build.build(each, seed=0) for line, each in specs.items()}
    net = nets["A"] if second is None else MeanOfNets(nets)
    net.load_state_dict(files.read_tensors(path))
    return Shipped(net.eval(), spec, classes, palette, card["name"], card["longest"], second)


def _spec(found: dict[str, Any]) -> NetSpec:
    """Return the net's specification that a card describes."""
    normalization = Normalization(*(tuple(found["normalization"][key]) for key in ("mean", "std")))
    return NetSpec(found["name"], found["classes"], tuple(found["shape"]), normalization, found["pixels"])


def describe(shipped: Shipped) -> dict[str, Any]:
    """Return what a user of the net must know; it goes into the card and into the ONNX metadata alike."""
    spec, longest = shipped.spec, shipped.longest
    channels, height, width = spec.shape
    colors = "gray" if channels == 1 else "RGB"
    if spec.pixels:
        larger = "" if longest is None else f"; first make images smaller whose longer side is above {longest}"
        size = f"native; pad right and below with 0 to multiples of {PADDING}, crop the logits back{larger}"
        takes, gives = f"(N, {channels}, H, W)", f"(N, {spec.classes}, H, W)"
    else:
        size = f"upright; the middle, cut to the shape of {height} × {width} (height × width) and resized, bilinear"
        takes, gives = f"(N, {channels}, {height}, {width})", f"(N, {spec.classes})"
    gives = f"logits: float32 {gives}; softmax over axis 1 gives probabilities"
    second = shipped.second
    return {
        "name": shipped.name,
        "net": spec.name if second is None else f"mean of two nets: {spec.name} and {second.name}",
        "task": "segmentation" if spec.pixels else "classification",
        "classes": shipped.classes,
        "palette": shipped.palette,
        "input": f"images: float32 {takes}, {colors} in [0, 1], that is pixel / 255; normalization is inside the net",
        "size": size,
        "output": gives if second is None else f"{gives}, the mean of both nets'",
        "longest": longest,
        "spec": asdict(spec),
        **({} if second is None else {"second": asdict(second)}),
        "dmt": VERSION,
    }


def pictures(run: Path, spec: NetSpec, check: Sequence[Path], data_folder: Path | None) -> tuple[list[Tensor], str]:
    """Return images (C, H, W) uint8 to compare nets on, and what they are in words; random ones only if need be."""
    folder = Folder(run)
    options = reading.configuration_of(folder).data
    paths, kind = _spread(predict_inputs.find(check), MANY), "images given"
    if not paths and spec.pixels:
        paths, kind = sorted(run.glob(f"{run_files.SAMPLES}/*/*-image.png"))[:FEW], "sample images of the run"
    if not paths and (place := data_folder or folder.manifest().get("folder")):
        splits = sorted((run / run_files.SPLITS).glob("*.json"))
        ids = [name for split in splits for name in files.read_json(split, schemas.SPLIT)["labeled"]]
        there = (Path(place) / name for name in _spread(ids, MANY) if _is_below(name))
        paths, kind = [path for path in there if path.is_file()][:FEW], "labeled photos of the run"
    if paths:
        return [_corner(path) if spec.pixels else predict.read(path, spec.shape) for path in paths], kind
    if not spec.pixels and (data_folder is not None or options.dataset in EMBEDDED):
        parts = opening.read(options, data_folder or Path(), lambda text: None, lambda done, of: None).parts
        if isinstance(parts, tuple):
            return _spread(list(parts[1].images), FEW), f"test images of {options.dataset}"
    generator = torch.Generator().manual_seed(0)
    noise = torch.randint(256, (FEW, *spec.shape), generator=generator, dtype=torch.uint8)
    return list(noise), "random images (give real ones with --check)"


def _write_onnx(shipped: Shipped, about: dict[str, Any], path: Path, images: tuple[list[Tensor], str]) -> Exported:
    import onnx

    seen, kind = images
    model = onnx_files.to_onnx(shipped.net, shipped.spec)
    texts = {key: value if isinstance(value, str) else json.dumps(value) for key, value in about.items()}
    onnx.helper.set_model_props(model, texts)
    content = model.SerializeToString()
    with _staged(path) as (stage,):
        files.write(stage, content)
        apart = onnx_files.difference(shipped.net, stage, onnx_files.batches(seen, pixels=shipped.spec.pixels))
        found = f"on {len(seen)} {kind}, logits of ONNX and PyTorch differ by {apart:.1e}; {TOLERANCE:.0e} is allowed"
        if not apart <= TOLERANCE:
            raise RunError(f"{found}, so no file was kept; use --to safetensors")
    opset = next(each.version for each in model.opset_import if not each.domain)
    what = f"{shipped.name} as ONNX in {path}: {len(content) / 1e6:.2f} MB, opset {opset}"
    return Exported((path,), f"{what}\n{found}")


def _write_safetensors(shipped: Shipped, about: dict[str, Any], path: Path) -> Exported:
    card_path, content = path.with_suffix(".json"), _content(shipped.net)
    channels, height, width = (shipped.spec.shape[0], 64, 96) if shipped.spec.pixels else shipped.spec.shape
    card = about | {
        "normalization": asdict(shipped.spec.normalization),
        "file": path.name,
        "holds": "one net" if shipped.second is None else "two nets: tensors begin with nets.A and nets.B",
        "sha256": hashlib.sha256(content).hexdigest(),
        "load": [
            "import torch; from dmt.use import exporting",
            f"shipped = exporting.load({path.name!r})",
            f"images = torch.rand(1, {channels}, {height}, {width})  # yours, in [0, 1]",
            "probabilities = shipped.net(images).softmax(1)",
        ],
    }
    with _staged(path, card_path) as (stage, card_stage):
        files.write(stage, content)
        files.write_json(card_stage, card)
        again = load(stage)
        if describe(again) != describe(shipped) or _content(again.net) != content:
            raise RunError(f"what was written to {path} reads back differently; check the disk and try again")
    what = f"{shipped.name} as safetensors in {path}: {len(content) / 1e6:.2f} MB, its card in {card_path.name}"
    return Exported((path, card_path), f"{what}\nread back: equal bit for bit")


def _origin(run: Path, options: ExportOptions) -> dict[str, Any]:
    """Return where the net came from, and its scores."""
    job, net = scoring.chosen(run, options.method, options.seed, options.line)
    inside = ("confusion", evidence_files.DIGEST)  # of use inside the run only
    scores = {split: {key: score[key] for key in score if key not in inside} for split, score in net.scores.items()}
    name = net.name
    place = {"data": job.data, "method": job.method, "seed": job.seed, "stage": name.stage, "copy": name.copy}
    return place | {"scores": scores}


@contextmanager
def _staged(*places: Path) -> Iterator[tuple[Path, ...]]:
    """Yield temporary paths to write to; the files are moved to their places on success, and deleted otherwise."""
    stages = tuple(path.with_name(f"{files.TEMPORARY}{os.getpid()}-{path.name}") for path in places)
    try:
        with files.named(places[0]):  # not by the temporary name
            yield stages
            for stage, path in zip(stages, places, strict=True):
                stage.replace(path)
    finally:
        for stage in stages:
            stage.unlink(missing_ok=True)


def _place(run: Path, to: str, out: str | Path | None, force: bool) -> Path:
    path = run / "export" / f"{run.resolve().name}.{to}" if out is None else Path(out)
    if path.suffix != f".{to}":
        raise ConfigError(f"--out must end in .{to}, and {path} does not")
    for each in (path, path.with_suffix(".json"))[: 1 if to == "onnx" else 2]:
        outputs.require_free(each)
        if each.exists() and (each.is_dir() or not force):
            raise RunError(f"{each} already exists; give another --out, or --force to overwrite it")
    return path


def _require_packages() -> None:
    for name in ("onnx", "onnxruntime", "onnxscript"):
        if importlib.util.find_spec(name) is None:
            raise ConfigError(f"--to onnx needs {name}, which was left out here: pip install {name}")


def _spread(items: Sequence[Any], count: int) -> list[Any]:
    """Return at most ``count`` of the items, evenly spaced."""
    return list(items[:: max(1, -(-len(items) // count))])


def _is_below(name: str) -> bool:
    """Return whether a relative path stays inside its folder."""
    path = Path(name)
    return not path.is_absolute() and ".." not in path.parts


def _corner(path: Path) -> Tensor:
    image = photo_files.read_photo(path)[:LARGEST, :LARGEST]
    return torch.from_numpy(image.copy()).permute(2, 0, 1)


def _content(net: nn.Module) -> bytes:
    return files.tensor_bytes(net.state_dict())
