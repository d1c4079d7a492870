"""A transformer block of mixed precision: the kernels against the reference, the reference against transformers."""

from __future__ import annotations

import pytest
import torch
from workbench_kernels.catalog import SOURCES
from workbench_kernels.errors import ArgumentError, BackendUnavailable
from workbench_kernels.gpu.attention import block, cache_append
from workbench_kernels.gpu.gemm import projections, w4a16
from workbench_kernels.gpu.quantize import norm_quantize
from workbench_kernels.gpu.quantize.norm_quantize import Rows
from workbench_kernels.gpu.workspace import Workspace

from ..shim.emulator import Emulator, missing
from ..shim.marks import built

USED = tuple(item for item in SOURCES if item.file.startswith(("norm", "cache", "decode", "gate", "gemv", "w4a16")))


def emulated(test):
    for mark in (pytest.mark.skipif(missing() is not None, reason=str(missing())), *built(*USED)):
        test = mark(test)
    return test


SHAPE = {**block.SMALL, "tokens": 9}


class Nowhere:
    """An executor whose kernels do nothing."""

    device = torch.device("cpu")
    processors = 2

    def empty(self, shape, dtype):
        return torch.zeros(*shape, dtype=dtype)

    def run(self, source, launch):
        pass


def tokens(count: int) -> torch.Tensor:
    return torch.randn(count, 1, 128, generator=torch.Generator().manual_seed(5)).half()


@emulated
@pytest.mark.parametrize("plan", ["w4a16", "mixed"])
def test_a_cache_grows_by_steps_as_the_reference_says(plan):
    made, plain = block.drawn_block(Emulator(order="greedy"), 2, plan=plan, **SHAPE)
    length = torch.zeros(1, dtype=torch.int32)
    cache, made.cache = (cache_append.empty_cache(Emulator(), 9, 1, 64, torch.int8) for _ in range(2))
    for place, x in enumerate(tokens(4)):
        length += 1
        expected, cache = plain.step(x, place, cache)
        result = made.step(x, length)
        assert (result.float() - expected.float()).abs().max() <= 1e-2 * expected.abs().max()
    assert torch.allclose(made.cache.key_scales, cache.key_scales, rtol=1e-2)
    assert not made.cache.key_scales[4:].any()


@emulated
def test_memory_is_allocated_on_the_first_step_only(monkeypatch):
    made, _ = block.drawn_block(Emulator(), 2, plan="mixed", **SHAPE)
    x, length = tokens(1)[0], torch.ones(1, dtype=torch.int32)
    first = made.step(x, length)
    copy, size = first.clone(), made.workspace.nbytes()
    monkeypatch.setattr(Emulator, "empty", lambda *_: pytest.fail("a second step allocates"))
    assert made.step(x, length) is first and torch.equal(first, copy)
    assert made.workspace.nbytes() == size > 0


def test_the_plain_reference_is_that_of_transformers():
    transformers = pytest.importorskip("transformers")
    from transformers.models.llama.modeling_llama import LlamaDecoderLayer, LlamaRotaryEmbedding

    config = transformers.LlamaConfig(
        hidden_size=128, num_attention_heads=2, num_key_value_heads=1, head_dim=64, intermediate_size=192,
        num_hidden_layers=1, rms_norm_eps=1e-5, max_position_embeddings=16, attn_implementation="eager",
    )  # fmt: skip
    _, plain = block.drawn_block(Nowhere(), 3, plan="plain", **SHAPE)
    layer = LlamaDecoderLayer(config, 0).double()
    names = {
        "query": layer.self_attn.q_proj, "key": layer.self_attn.k_proj, "value": layer.self_attn.v_proj,
        "output": layer.self_attn.o_proj, "gate": layer.mlp.gate_proj, "up": layer.mlp.up_proj,
        "down": layer.mlp.down_proj,
    }  # fmt: skip
    with torch.no_grad():
        for name, linear in names.items():
            linear.weight.copy_(plain.weights[name])
        layer.input_layernorm.weight.copy_(plain.norms[0])
        layer.post_attention_layernorm.weight.copy_(plain.norms[1])
        x = tokens(5)
        places = torch.arange(5)[None]
        embeddings = LlamaRotaryEmbedding(config)(x.double().transpose(0, 1), places)
        mask = torch.full((5, 5), -torch.inf, dtype=torch.float64).triu(1)[None, None]
        result = layer(x.double().transpose(0, 1), attention_mask=mask, position_ids=places,
                      position_embeddings=embeddings)  # fmt: skip
    expected = (result[0] if isinstance(result, tuple) else result).reshape(5, 1, 128)
    cache = cache_append.empty_cache(Nowhere(), 9, 1, 64, torch.int8)
    for place in range(5):
        result, cache = plain.step(x[place], place, cache)
        error = (result.double() - expected[place]).norm() / expected[place].norm()
        assert error < 0.02  # the cache holds INT8


def test_parts_that_do_not_fit_are_named():
    made, plain = block.drawn_block(Nowhere(), 2, plan="plain", **SHAPE)
    parts = {name: projections.Plain(weight.half()) for name, weight in plain.weights.items()}
    narrow = projections.Plain(torch.zeros(192, 64).half())
    for name, wrong, message in (
        ("up", narrow, "up is 192 x 64; the block needs 192 x 128"),
        ("down", narrow, "gate is 192 x 128; the block needs 64 x 128"),
        ("query", projections.Plain(torch.zeros(96, 128).half()), "output is 128 x 128; the block needs 128 x 96"),
    ):
        with pytest.raises(ArgumentError, match=message):
            block.Block(block.Projections(**{**parts, name: wrong}), made.norms, made.cache, made.turns, on=Nowhere())
    with pytest.raises(ArgumentError, match="norm is float32; expected float16"):
        block.Block(block.Projections(**parts), (made.norms[0].float(),) * 2, made.cache, made.turns, on=Nowhere())
    length = torch.ones(1, dtype=torch.int32)
    with pytest.raises(ArgumentError, match=r"x has shape \(2, 128\); expected \(1, 128\)"):
        made.step(torch.zeros(2, 128).half(), length)
    with pytest.raises(ArgumentError, match="length is int64; expected int32"):
        made.step(torch.zeros(1, 128).half(), length.long())
    with pytest.raises(BackendUnavailable, match="recorded on a CUDA device; this block is on cpu"):
        made.record(tokens(1)[0], length)


def test_a_projection_takes_only_its_own_form_of_activations():
    plain, _ = projections.quantized(torch.randn(16, 64), "plain")
    eight, _ = projections.quantized(torch.randn(16, 64), "int8")
    codes = Rows(values=torch.zeros(1, 64, dtype=torch.int8), scales=torch.ones(1))
    with pytest.raises(ArgumentError, match="takes plain float16 activations; got torch.int8"):
        plain.apply(codes, on=Nowhere())
    with pytest.raises(ArgumentError, match="takes torch.int8 activations with scales; got plain"):
        eight.apply(Rows(values=torch.zeros(1, 64).half(), scales=None), on=Nowhere())
    with pytest.raises(ArgumentError, match="kind is 'int3'; expected one of 'plain'"):
        projections.quantized(torch.randn(16, 64), "int3")


@pytest.mark.parametrize("kind", projections.KINDS)
def test_rounded_weights_are_near_the_given_ones(kind):
    weight = torch.randn(32, 256, generator=torch.Generator().manual_seed(1))
    made, exact = projections.quantized(weight, kind)
    assert (made.rows, made.columns) == (32, 256) and 0 < made.nbytes() < 4 * weight.numel()
    error = float((exact - weight).norm() / weight.norm())
    assert error < {"plain": 1e-3, "w4a16": 0.12, "int8": 0.01, "fp8": 0.03}[kind]


@emulated
@pytest.mark.parametrize("kind", projections.KINDS)
def test_stacked_projections_give_the_outputs_of_their_parts(kind):
    weights = torch.randn(3, 128, 64, generator=torch.Generator().manual_seed(4))
    parts = [projections.quantized(weight, kind, 64)[0] for weight in weights]
    x = torch.randn(1, 64, generator=torch.Generator().manual_seed(6)).half()
    rows = Rows(values=x, scales=None)
    if parts[0].codes is not None:
        codes, scales = norm_quantize.quantized_rows(x.float(), parts[0].codes)
        rows = Rows(values=codes, scales=scales)
    block = projections.stacked(parts)
    assert block is not None and block.rows == 384 and block.nbytes() == sum(part.nbytes() for part in parts)
    apart = torch.cat([part.apply(rows, on=Emulator()) for part in parts], 1)
    torch.testing.assert_close(block.apply(rows, on=Emulator()), apart, rtol=2e-3, atol=2e-3)


def test_projections_of_different_kinds_or_odd_sizes_stay_apart():
    weight = torch.randn(128, 64, generator=torch.Generator().manual_seed(4))
    made = {kind: projections.quantized(weight, kind, 64)[0] for kind in projections.KINDS}
    assert projections.stacked([made["plain"], made["int8"]]) is None
    assert projections.stacked([made["int8"], made["fp8"]]) is None
    odd = projections.quantized(weight[:100], "plain")[0]
    assert projections.stacked([odd, odd]) is None
    short = projections.quantized(weight[:64], "w4a16", 64)[0]
    assert projections.stacked([short, made["w4a16"]]) is None
    assert projections.stacked([made["w4a16"], projections.quantized(weight, "w4a16", 32)[0]]) is None
    assert projections.stacked([made["w4a16"], short]).rows == 192


def test_a_workspace_serves_one_sequence_of_shapes():
    on = Workspace(Nowhere())
    first = on.empty((2, 3), torch.float32)
    assert on.empty((2, 3), torch.float32) is not first
    on.rewind()
    assert on.empty((2, 3), torch.float32) is first
    with pytest.raises(ArgumentError, match=r"buffer 1 of this workspace is torch.float32 \(2, 3\); now torch.float16"):
        on.empty((2, 3), torch.float16)


def test_the_variants_of_a_shape_begin_with_the_chosen_one():
    w = w4a16.pack(torch.zeros(256, 512, dtype=torch.uint8), torch.ones(256, 4).half(), None)
    for m, kernel in ((1, "few16"), (9, "tile16"), (40, "tile64"), (300, "dequantize")):
        result = w4a16.variants(m, w, 8)
        assert result[0] == w4a16.chosen(m, w, 8) and result[0].kernel == kernel
        assert len(set(result)) == len(result) > 1
        assert ("few8" in {v.kernel for v in result}) == (m <= 8)
