from dmt import config as configuration
from dmt import presets
from dmt.methods import catalogue
from dmt.runs import forecast, progress


def test_labeling_counts_with_all_its_passes() -> None:
    config = configuration.override(presets.get("scenes").config, {"ema": 0.9, "shape": "chain"})
    several = configuration.override(config, {"labeler": "mean", "labeling_views": "flip,0.75", "flip": True})
    sizes = config.data.sizes
    for each, passes in ((config, 1.0), (several, 2 * 2 * (1 + 0.75**2))):
        stages = catalogue.plan("dmt", each.recipe).stages
        training = sum(stage.steps(sizes) * stage.cost().passes for stage in stages)
        labeling = 5 * passes * sizes.unlabeled / 3
        _, summary = forecast.table(stages, sizes, rate=0.5, forward=1 / 3)
        assert f"about {progress.duration((training + labeling) / 0.5)} on this machine" in summary
