"""Prompts: one BOS, the system role, the cut in the middle, foreign markup; limits. No vLLM, no
transformers.
"""

from __future__ import annotations

import pytest
from fake_tokenizer import (
    BOS_ID,
    CHATML,
    DROPS_SYSTEM,
    DROPS_USER,
    REFUSES_SYSTEM,
    WITH_BOS,
    FakeTokenizer,
)

from evaluation.inference.limits import LIMITS, output_limit, prompt_room
from evaluation.inference.prompts import PromptError, cut_place, foreign_markup, one_bos, prepare
from evaluation.inference.samples import SECOND_TURN
from evaluation.tasks import TASKS

SYSTEM = "You are a helpful assistant."


@pytest.mark.parametrize(
    ("template", "bos", "adds_bos", "wanted"),
    [
        pytest.param(WITH_BOS, True, False, 1, id="template writes it"),
        pytest.param(WITH_BOS, True, True, 1, id="template and tokenizer both would (#22)"),
        pytest.param("{{- bos_token -}}" + WITH_BOS, True, True, 1, id="template writes it twice"),
        pytest.param(CHATML, True, True, 1, id="only the tokenizer would"),
        pytest.param(CHATML, True, False, 0, id="neither: the model wants none"),
        pytest.param(CHATML, False, False, 0, id="no such token"),
    ],
)
def test_exactly_one_bos_where_one_is_wanted(template, bos, adds_bos, wanted):
    chat = prepare(FakeTokenizer(template, bos, adds_bos), SYSTEM)
    for prompt in (chat.prompt(["2 + 3?"], 10_000), chat.prompts([["2 + 3?"]], [10_000])[0]):
        assert prompt.ids.tolist().count(BOS_ID) == wanted
        assert prompt.ids.tolist()[:wanted] == [BOS_ID] * wanted


def test_one_bos_leaves_a_bos_inside_the_text_alone():
    assert one_bos([1, 1, 5, 1], 1, True) == [1, 5, 1]
    assert one_bos([5, 1], 1, True) == [1, 5, 1]
    assert one_bos([1, 1, 5], None, False) == [1, 1, 5]


@pytest.mark.parametrize(
    ("template", "merged"),
    [
        pytest.param(CHATML, False, id="has a system role"),
        pytest.param(REFUSES_SYSTEM, True, id="raises on one (#20)"),
        pytest.param(DROPS_SYSTEM, True, id="leaves it out in silence (#20)"),
    ],
)
def test_the_system_prompt_always_arrives(template, merged):
    chat = prepare(FakeTokenizer(template), SYSTEM)
    assert chat.merged is merged
    text = chat.text(["2 + 3?"])
    assert text.count(SYSTEM) == 1
    assert text.index(SYSTEM) < text.index("2 + 3?")


def test_without_a_system_prompt_there_is_none():
    chat = prepare(FakeTokenizer(CHATML), "")
    assert "system" not in chat.text(["hello"])
    assert chat.merged is False


@pytest.mark.parametrize(
    ("template", "message"),
    [
        pytest.param(None, "--chat_template", id="a base model has no template (#21)"),
        pytest.param(DROPS_USER, "drops", id="the user's text is lost"),
        pytest.param("{{ messages[0].nothing.there }}", "fails", id="a broken template"),
        pytest.param("{% if %}", "fails", id="no template at all but a syntax error"),
    ],
)
def test_a_template_that_cannot_serve_is_one_line(template, message):
    with pytest.raises(PromptError) as caught:
        prepare(FakeTokenizer(template), SYSTEM)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_given_template_replaces_the_models_own():
    assert prepare(FakeTokenizer(None), SYSTEM, CHATML).text(["hi"]).endswith("<|im_start|>assistant\n")


def test_template_arguments_are_used_or_named():
    chat = prepare(FakeTokenizer(CHATML), SYSTEM, None, {"enable_thinking": False, "thinking": False})
    assert chat.text(["hi"]).endswith("<think></think>")
    assert chat.unused == ("thinking",)


def test_turns_alternate_with_the_models_own_answer_in_the_middle():
    text = prepare(FakeTokenizer(CHATML), SYSTEM).text(["Name a stew.", "Goulash.", "A vegan one."])
    parts = [
        "system\n" + SYSTEM,
        "user\nName a stew.",
        "assistant\nGoulash.",
        "user\nA vegan one.",
        "assistant\n",
    ]
    assert text == "".join(f"<|im_start|>{part}<|im_end|>\n" for part in parts).removesuffix("<|im_end|>\n")


@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("length", [0, 1, 5, 40, 200, 1000, 5000])
@pytest.mark.parametrize("room", [120, 150, 400, 1001])
def test_a_cut_keeps_head_and_tail_and_fits_and_what_fits_is_never_cut(fast, length, room):
    tokenizer = FakeTokenizer(WITH_BOS, fast=fast)
    chat = prepare(tokenizer, SYSTEM)
    user = "FIRST" + "x" * length + "LAST"
    prompt = chat.prompt([user], room)
    whole = tokenizer(chat.text([user]), add_special_tokens=False)["input_ids"]
    if len(whole) <= room:
        assert prompt.ids.tolist() == whole
        assert prompt.cut == 0
        return
    assert len(prompt.ids) == room
    assert prompt.cut == len(whole) - room
    text = tokenizer.text(prompt.ids)
    assert text.startswith("<s><|im_start|>system\nYou are")
    assert text.endswith("LAST<|im_end|>\n<|im_start|>assistant\n")
    head = next(n for n in range(room + 1) if n == room or prompt.ids[n] != whole[n])
    assert prompt.ids.tolist()[head:] == whole[len(whole) - (room - head) :]


def test_the_cut_of_a_conversation_leaves_its_turns_in_place():
    tokenizer = FakeTokenizer(CHATML)
    chat = prepare(tokenizer, SYSTEM)
    prompt = chat.prompt(["Name a stew.", "start" + "y" * 3000 + "end", "A vegan one."], 400)
    text = tokenizer.text(prompt.ids)
    assert len(prompt.ids) == 400
    assert "user\nName a stew.<|im_end|>" in text
    assert "assistant\nstarty" in text
    assert "yend<|im_end|>\n<|im_start|>user\nA vegan one.<|im_end|>" in text


def test_the_cut_counts_a_bos_that_was_added():
    tokenizer = FakeTokenizer(CHATML, adds_bos=True)
    prompt = prepare(tokenizer, SYSTEM).prompt(["FIRST" + "z" * 900 + "LAST"], 300)
    text = tokenizer.text(prompt.ids)
    assert len(prompt.ids) == 300
    assert text.startswith("<s><|im_start|>system\n" + SYSTEM + "<|im_end|>\n<|im_start|>user\nFIRST")
    assert text.endswith("LAST<|im_end|>\n<|im_start|>assistant\n")


def test_cut_place_falls_back_to_the_whole_prompt():
    assert cut_place(100, 90, (40, 60)) == (45, 55)  # too short a span: the middle of everything
    assert cut_place(1000, 900, (500, 900)) == (650, 750)


def test_many_prompts_are_tokenised_in_batches_and_like_single_ones():
    chat = prepare(FakeTokenizer(WITH_BOS), SYSTEM)
    talks = [[f"question {n}" * (n % 50)] for n in range(600)]
    assert chat.prompts(talks, [200] * 600) == [chat.prompt(talk, 200) for talk in talks]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("<|im_start|>user\nhi<|im_end|>", ("own (chatml)",)),
        ("<|begin_of_text|><|start_header_id|>user<|end_header_id|>", ("llama3",)),
        ("<s>[INST] hi [/INST]", ("llama2/mistral",)),
        ("<start_of_turn>user", ("gemma",)),
        ("a plain question about [INSTALL] and <user>", ()),
    ],
)
def test_chat_markup_in_a_prompt_is_detected(text, found):
    assert foreign_markup(text, CHATML) == found


def test_every_task_has_a_limit_and_prose_and_reasoning_have_4096():
    assert set(LIMITS) == set(TASKS)
    assert min(limit.output for limit in LIMITS.values()) >= 4096
    assert all(limit.reserve <= limit.output for limit in LIMITS.values())


def test_a_reused_first_turn_has_the_same_limit():
    for task, donor in SECOND_TURN.items():
        if donor:
            assert LIMITS[task].output == LIMITS[donor].output


@pytest.mark.parametrize("window", [16, 100, 256, 2048, 32768, 131072])
def test_room_for_the_prompt(window):
    for task in LIMITS:
        for cap in (None, 1, 64, 100_000):
            room = prompt_room(task, window, cap)
            assert 1 <= room < window
            assert window - room <= max(1, window // 4)
            assert output_limit(task, cap) <= LIMITS[task].output


def test_a_needle_prompt_of_31000_tokens_stays_whole_in_32768():
    assert prompt_room("ruler.32k", 32768, None) >= 31_000
