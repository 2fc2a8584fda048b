"""What is wrapped around an answer leaves the verdict: politeness, marks nobody sees, tokens left behind."""

from __future__ import annotations

import pytest

from evaluation.extraction.courtesies import without_courtesies
from evaluation.rows import make_row
from evaluation.scoring import score_by_rules

OPTIONS = ["basalt", "quartz", "marble", "slate"]
NEEDLE_TEXT = "Wren holds 4820193. Pike holds 7719405. Which number is it?"
# task: ({columns}, an answer that is right, one that is wrong, the column of the verdict)
ROWS = {
    "gsm8k.subset": ({"gold": "3*4=12\n#### 12"}, "Answer: 12", "Answer: 13", "correct"),
    "mgsm.subset": ({"gold": 12, "lang": "de"}, "Antwort: 12", "Antwort: 13", "correct"),
    "mmlu_pro.subset": ({"gold": "B", "choices": OPTIONS}, "B", "C", "correct"),
    "truthfulqa.full": ({"gold": "B", "choices": OPTIONS}, '{"answer": "B"}', '{"answer": "C"}', "correct"),
    "hellaswag.subset": ({"gold": 1, "choices": OPTIONS}, "quartz", "slate", "correct"),
    "supergpqa.subset": ({"gold": "B", "choices": OPTIONS}, "B", "C", "correct"),
    "popqa.subset": ({"gold": ["Bergen"]}, "Bergen", "Oslo", "correct"),
    "boolq.subset": ({"gold": True, "ctx": "Owls fly at night."}, "Yes", "No", "correct"),
    "hotpotqa.subset": ({"gold": "Otto Salk", "ctx": "By Otto Salk."}, "Otto Salk", "Ida Veen", "correct"),
    "math.subset": ({"gold": "12"}, "$\\boxed{12}$", "$\\boxed{13}$", "correct"),
    "livemathbench.full": ({"gold": "12"}, "12", "13", "correct"),
    "ruler.32k": ({"gold": "4820193"}, "4820193", "1111111", "exact"),
    "ruler.4k": ({"gold": "4820193", "prompt": NEEDLE_TEXT}, "7", "Which one do you mean?", "compliance"),
    "bfcl.subset": ({"gold": ["turn_on()"]}, "turn_on()", "turn_off()", "integration_correct"),
    "mnms.full": ({"gold": [{"id": 0, "name": "trivia"}]}, "trivia()", "weather()", "integration_correct"),
    "gsm8k.schema": (
        {"schema": {"type": "object", "required": ["a"]}}, '{"a": 1}', '{"b": 1}', "correct"
    ),
}  # fmt: skip
WRAPPERS = {
    "as it is": "{}",
    "blanks": " \n\t {} \n\n",
    "carriage returns": "{}\r\n",
    "byte order mark": "\ufeff{}",
    "zero width": "\u200b{}\u200b",
    "no-break space": "\u00a0{}\u00a0",
    "thought": "<think>Is it A, 99 or Oslo?</think>\n{}",
    "thought that the prompt opened": "Is it A, 99 or Oslo?</think>\n\n{}",
    "harmony": "<|channel|>analysis<|message|>A? 99?<|end|><|channel|>final<|message|>{}<|return|>",
    "end of turn": "{}<|im_end|>",
    "end of text": "{}</s>",
    "opening": "Sure! {}",
    "opening on a line": "Certainly!\n\n{}",
    "closing": "{}\n\nLet me know if you need anything else!",
    "two closings": "{}\n\nI hope this helps! Feel free to ask if you have any questions.",
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("task", ROWS)
def test_a_wrapper_leaves_the_verdict(task, wrapper):
    columns, right, wrong, verdict = ROWS[task]
    for answer, expected in ((right, True), (wrong, False)):
        score = score_by_rules(
            make_row(task, {**columns, "outputs": WRAPPERS[wrapper].replace("{}", answer)})
        )
        assert score[verdict] == expected, (answer, score)


COURTESIES = {
    "Sure! C": "C",
    "Sure. It is C": "Sure. It is C",
    "Certainly!\n\nC\n\nPlease let me know if you have any other questions.": "C",
    "C. Hope this helps!": "C.",
    "C\nDon’t hesitate to ask should you need more help.\nHave a great day!": "C",
    "I hope this helps!": "I hope this helps!",
    "Let me know which crate you mean.": "Let me know which crate you mean.",
    "Sure, here is the answer:\n\nWe add both and get 5": "We add both and get 5",
    "Here is my final answer:\nC": "Here is my final answer:\nC",
    "Which one? Let me know if you mean the north one.": "Which one? Let me know if you mean the north one.",
    "": "",
}


@pytest.mark.parametrize("text", COURTESIES)
def test_courtesies(text):
    assert without_courtesies(text) == COURTESIES[text]


@pytest.mark.parametrize(
    "unit", ["I hope this helps! ", "let me know if ", "Sure! ", "! ", " ", "\n", "(", "-"]
)
def test_courtesies_end_on_long_texts(unit):
    without_courtesies(unit * (100_000 // len(unit)))
