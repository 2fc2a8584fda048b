"""1,000 distinct mathematics pairs, cold: python tests/benchmarks/bench_mathematics.py

Prints the time from an empty process, how the pairs were decided, and the time of a pair by kind.
Target: under 20 s. Pairs that cost their time limit (what the guarded parser never ends) are not among them.
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from pathlib import Path

START = time.perf_counter()
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from evaluation.rows import make_row  # noqa: E402
from evaluation.scorers import symbolic  # noqa: E402
from evaluation.scorers.equivalence import compare  # noqa: E402
from evaluation.scorers.reasoning import score_math  # noqa: E402

TARGET_S = 20.0

# kind -> (gold, answer), each formatted with n and its neighbours; shares follow what solutions look like
KINDS = {
    "numbers": (["{n}", "{n}", "{n}.0", "-{n}"], ["{n}", "{m}", "{n}", "-{n}"], 400),
    "fractions": ([r"\frac{{{n}}}{{7}}", "{n}/7"], [r"\dfrac{{{n}}}{{7}}", "{d}/14"], 150),
    "roots": ([r"{n}\sqrt{{3}}", r"\sqrt{{{n}}}"], [r"\sqrt{{{q}}}", r"\sqrt{{{m}}}"], 80),
    "algebra": (["x^2+{n}x", "(x+{n})^2"], ["x(x+{n})", "x^2+{d}x+{s}"], 100),
    "units": ([r"{n}\text{{ cm}}", "{n}"], ["{n} cm", r"\${n}"], 80),
    "lists": (["{n}, {m}", "({n},{m})"], ["{m}, {n}", "({n}, {m})"], 60),
    "identities": ([r"\sin(2x)+{n}", "{n}"], [r"2\sin x\cos x+{n}", r"{n}(\sin^2 x+\cos^2 x)"], 50),
    "words": (["even{n}", "Monday"], ["the even one {n}", "the day number {n}"], 30),
    "sums (guarded parser)": ([r"\sum_{{k=1}}^{{{n}}} k"], ["{t}"], 25),
    "integrals (guarded parser)": ([r"\int_0^{n} x\,dx"], [r"\frac{{{s}}}{{2}}"], 25),
}


def pairs() -> list[tuple[str, str, str]]:
    found = []
    for kind, (golds, answers, count) in KINDS.items():
        for number in range(count):
            n = number + 2
            values = {"n": n, "m": n + 1, "d": 2 * n, "q": 3 * n * n, "s": n * n, "t": n * (n + 1) // 2}
            which = number % len(golds)
            found.append((kind, golds[which].format(**values), answers[which].format(**values)))
    return found


def main() -> None:
    imported = time.perf_counter() - START
    by_kind: dict[str, list[float]] = defaultdict(list)
    equal = symbolic_count = 0
    work = pairs()
    for kind, gold, answer in work:
        start = time.perf_counter()
        verdict = compare(gold, answer)
        by_kind[kind].append(time.perf_counter() - start)
        equal += verdict.equal is True
        symbolic_count += verdict.symbolic
    total = time.perf_counter() - START
    symbolic.close()
    for kind, times in by_kind.items():
        mean, longest = 1000 * sum(times) / len(times), 1000 * max(times)
        print(f"{kind:28} {len(times):4} pairs  mean {mean:8.2f} ms  max {longest:8.1f} ms")
    print(
        f"{len(work)} pairs, {len(set(work))} distinct, {equal} equal, {symbolic_count} by the guarded parser"
    )
    print(
        f"imports {imported:.2f} s, all {total:.2f} s cold; "
        f"{total / TARGET_S:.2f} of the target of {TARGET_S:.0f} s"
    )

    text = "Step 1: Let x be given and 2 + 3 = 5.\n" * 20
    text += "**Final Answer:** $\\boxed{\\frac{1}{2}}$. I hope it helps."
    start = time.perf_counter()
    for number in range(1000):
        score_math(make_row("math.subset", {"outputs": text + " " * (number % 7), "gold": "0.5"}))
    print(f"1000 whole MATH rows of {len(text)} characters: {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    main()
