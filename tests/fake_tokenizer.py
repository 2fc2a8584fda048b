"""A tokenizer for tests without transformers: one id a character, chat templates rendered by jinja2 as
transformers does.
"""

from __future__ import annotations

import re
from typing import Any

import jinja2
import jinja2.sandbox

BOS, BOS_ID = "<s>", 1
CHATML = (
    "{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}"
    "{%- if enable_thinking is defined and not enable_thinking -%}{{- '<think></think>' -}}{%- endif -%}"
    "{%- endif -%}"
)
WITH_BOS = "{{- bos_token -}}" + CHATML
REFUSES_SYSTEM = (
    "{{- bos_token -}}{%- for m in messages -%}"
    "{%- if m.role == 'system' -%}{{- raise_exception('System role not supported') -}}{%- endif -%}"
    "{{- '<start_of_turn>' + m.role + '\\n' + m.content | trim + '<end_of_turn>\\n' -}}{%- endfor -%}"
    "{{- '<start_of_turn>model\\n' -}}"
)
DROPS_SYSTEM = (
    "{%- for m in messages if m.role != 'system' -%}{{- '[' + m.role + ']' + m.content -}}{%- endfor -%}"
    "{{- '[assistant]' -}}"
)
DROPS_USER = (
    "{{- '[assistant]' -}}{%- for m in messages if m.role == 'system' -%}{{- m.content -}}{%- endfor -%}"
)


class FakeTokenizer:
    """adds_bos: ordinary text is encoded with BOS in front. fast: knows offsets."""

    def __init__(
        self, template: str | None = CHATML, bos: bool = True, adds_bos: bool = False, fast: bool = True
    ):
        self.chat_template = template
        self.bos_token_id = BOS_ID if bos else None
        self.adds_bos = adds_bos
        self.fast = fast
        self.calls = 0

    def apply_chat_template(self, messages: list, chat_template: str, **arguments: Any) -> str:
        def refuse(message: str) -> None:
            raise jinja2.TemplateError(message)

        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        template = environment.from_string(chat_template)
        arguments.pop("tokenize")
        return template.render(messages=messages, bos_token=BOS, raise_exception=refuse, **arguments)

    def __call__(
        self, text: Any, add_special_tokens: bool = True, return_offsets_mapping: bool = False
    ) -> dict:
        if return_offsets_mapping and not self.fast:
            raise NotImplementedError("offsets")
        if isinstance(text, list):
            return {"input_ids": [self._ids(item, add_special_tokens) for item in text]}
        spans = [match.span() for match in re.finditer(r"<s>|.", text, re.DOTALL)]
        return {"input_ids": self._ids(text, add_special_tokens), "offset_mapping": spans}

    def _ids(self, text: str, special: bool) -> list[int]:
        self.calls += 1
        found = [BOS_ID if part == BOS else ord(part) for part in re.findall(r"<s>|.", text, re.DOTALL)]
        return [BOS_ID, *found] if special and self.adds_bos else found

    @staticmethod
    def text(ids: Any) -> str:
        return "".join(BOS if number == BOS_ID else chr(number) for number in ids)
