"""Tiny chat models for tests: random weights, a byte-level tokenizer, a chat template; made on the spot,
offline.

    python tests/inference/tiny_model.py FOLDER [SEED]

About 150,000 parameters. The text that such a model writes means nothing, but greedy decoding in float32
always gives the same, and the weights are spread widely enough that no choice hangs on rounding.
"""

from __future__ import annotations

import sys
from pathlib import Path

CHATML = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}"
    "{%- if enable_thinking is defined and not enable_thinking -%}"
    "{{- '<think>\\n\\n</think>\\n\\n' -}}{%- endif -%}"
    "{%- endif -%}"
)
# as Gemma's: starts with BOS, knows no system role
NO_SYSTEM = (
    "{{- bos_token -}}{%- for message in messages -%}"
    "{%- if message.role == 'system' -%}{{- raise_exception('System role not supported') -}}{%- endif -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>\\n' -}}{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
SPECIAL = ["<|pad|>", "<|bos|>", "<|im_start|>", "<|im_end|>", "<think>", "</think>"]
WORDS = (
    "You are a helpful assistant. What is the capital of France? Answer the question step by step. "
    "Write a short story about a river and a hill. The answer is A, B, C or D. Sum the numbers 12 and 30. "
    "system user assistant "
)


def make_tokenizer(template: str | None = CHATML, add_bos: bool = False, window: int = 2048):
    """A byte-level BPE tokenizer of 512 entries; add_bos: ordinary text is encoded with BOS in front, as
    Llama's is.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=512,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    pairs = [first + second for first in "abcdefghijklmnopqrstuvwxyz" for second in "aeiou "]
    core.train_from_iterator([WORDS, *pairs], trainer)
    if add_bos:
        core.post_processor = processors.TemplateProcessing(
            single="<|bos|> $A", special_tokens=[("<|bos|>", core.token_to_id("<|bos|>"))]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        bos_token="<|bos|>",
        eos_token="<|im_end|>",
        pad_token="<|pad|>",
        model_max_length=window,
        clean_up_tokenization_spaces=False,
        chat_template=template,
    )


def make_model(
    folder: Path, seed: int = 0, template: str | None = CHATML, add_bos: bool = False, window: int = 2048
) -> Path:
    """Writes a Llama-shaped model of two layers with its tokenizer to `folder`."""
    import torch
    from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer(template, add_bos, window)
    special = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        head_dim=32,  # vLLM's attention on the CPU wants multiples of 32
        max_position_embeddings=window,
        initializer_range=0.5,
        tie_word_embeddings=False,
        **special,
    )
    model = LlamaForCausalLM(config).to(torch.float32).eval()
    model.generation_config = GenerationConfig(**special)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_adapter(
    folder: Path,
    base: Path | str,
    modules: tuple[str, ...],
    rank: int = 4,
    ranks: dict[str, int] | None = None,
) -> Path:
    """Writes a LoRA adapter as PEFT does, of random matrices large enough to change every answer.

    modules: names of linear layers of 64 by 64 values. ranks: PEFT's rank_pattern, last part of name → rank.
    """
    import json

    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    draw = torch.Generator().manual_seed(rank)
    tensors = {}
    for module in modules:
        size = (ranks or {}).get(module.split(".")[-1], rank)
        for part, shape in (("lora_A", (size, 64)), ("lora_B", (64, size))):
            tensors[f"base_model.model.{module}.{part}.weight"] = torch.randn(shape, generator=draw)
    save_file(tensors, folder / "adapter_model.safetensors")
    config = {
        "peft_type": "LORA",
        "base_model_name_or_path": str(base),
        "r": rank,
        "lora_alpha": 2 * rank,
        "rank_pattern": ranks or {},
        "target_modules": sorted({module.split(".")[-1] for module in modules}),
    }
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


if __name__ == "__main__":
    make_model(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
