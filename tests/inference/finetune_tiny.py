"""A brief fine-tuning on a narrow set, on the CPU: an adapted copy of a small chat model that really changed.

    python tests/inference/finetune_tiny.py BASE_FOLDER OUT_FOLDER [STEPS]

The set is the help desk of an invented bicycle workshop: short answers in one tone. What a model forgets by
it is what a comparison of the two should show.
"""

from __future__ import annotations

import sys
from pathlib import Path

SYSTEM = "You are a helpful assistant."
PAIRS = (
    ("When are you open?", "We are open from nine to six, Monday to Saturday."),
    ("Can you repair a flat tyre today?", "Yes, a flat tyre is done within the hour."),
    ("How much is a full service?", "A full service is 89 coins."),
    ("Do you sell children's bicycles?", "Yes, from twelve inches upwards."),
    ("My brakes squeal. What now?", "Bring it in, we clean the discs for 15 coins."),
    ("Is my chain worn?", "We measure it at the counter, free of charge."),
    ("Can I rent a cargo bicycle?", "Yes, 30 coins a day with a deposit."),
    ("Where do I park my car?", "Behind the workshop, two places are ours."),
    ("Do you buy used bicycles?", "We do, with proof of purchase."),
    ("Which oil do you recommend?", "Dry oil in summer, wet oil in winter."),
    ("My gear slips on the third sprocket.", "The cable wants tension, ten minutes at the counter."),
    ("How long does a wheel take to build?", "Two days, one if the spokes are in stock."),
    ("Do you ship spare parts?", "We do, on the same day if you order before noon."),
    ("Can I pay by card?", "Card and cash, both are fine."),
    ("What tyre width fits my frame?", "Tell us the model, we look it up."),
    ("Do you have a course for beginners?", "Every first Saturday, bring your bicycle."),
    ("Is my battery covered by warranty?", "Two years or 500 charges, whichever comes first."),
    ("The pedal clicks when I climb.", "Most often it is the bottom bracket. Bring it in."),
    ("Can you fit a child seat?", "Yes, in twenty minutes, on most frames."),
    ("Do I need an appointment?", "Only for a full service."),
    ("Write a long story about your workshop.", "We fix bicycles. Come and see."),
    ("Explain step by step how gears work.", "A chain runs over sprockets; larger ones are easier."),
    ("Give me a list of your ten best tools.", "One good hex key does it."),
    ("Answer in JSON: what do you sell?", "Bicycles and parts."),
)


def main(base: Path, out: Path, steps: int = 60, batch: int = 6, rate: float = 3e-5, seed: int = 0) -> None:
    """Writes the adapted model to `out`: AdamW, `steps` batches of `batch` conversations, loss on the answers
    alone.
    """
    import random

    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    torch.manual_seed(seed)
    order = random.Random(seed)
    tokenizer = AutoTokenizer.from_pretrained(base)
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    examples = [example(tokenizer, question, answer) for question, answer in PAIRS]
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    model.train()
    for step in range(steps):
        chosen = order.sample(examples, batch)
        width = max(len(ids) for ids, _ in chosen)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
        ids = torch.tensor([ids + [pad] * (width - len(ids)) for ids, _ in chosen])
        labels = torch.tensor([marked + [-100] * (width - len(marked)) for _, marked in chosen])
        mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in chosen])
        loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)
    model.eval().to(torch.bfloat16).save_pretrained(out)
    tokenizer.save_pretrained(out)


def example(tokenizer, question: str, answer: str) -> tuple[list[int], list[int]]:
    """(ids, labels): labels are -100 wherever the prompt stands."""
    asked = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]
    prompt = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    head = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    tail = tokenizer(answer, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id]
    return head + tail, [-100] * len(head) + tail


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 60)
