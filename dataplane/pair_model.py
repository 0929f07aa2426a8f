"""The pair model that ships with the data plane."""

from importlib import resources

from dataplane.logic.pairs.model import PairModel


def shipped_pair_model() -> PairModel:
    """The combiner that tells repeats from contradictions; raises UnusableModel when the file is spoilt."""
    return PairModel.from_json((resources.files("dataplane") / "models" / "pairs.json").read_bytes())
