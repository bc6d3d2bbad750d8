"""All hand-computed losses, by the name of their objective."""

from tests.objectives import by_hand, by_hand_branches, by_hand_pixels
from tests.objectives.by_hand import Case

CASES: dict[str, list[Case]] = by_hand.CASES | by_hand_pixels.CASES | by_hand_branches.CASES
