"""The judge of a run: asked once, limited, kept on disk, ended for good.

And a failure never becomes a score.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from support import ROOT, golden_rows

from evaluation.engine import Recorder
from evaluation.judge.backends import Connection, Failure, Reply, builtin
from evaluation.judge.cache import FILE, Cache, key
from evaluation.judge.modes import question
from evaluation.judge.pool import LOST_IN_A_ROW, START, Limit, Pool
from evaluation.judge.service import DEFAULTS, JudgeFatal, JudgeOptions, JudgeService
from evaluation.scoring import score_row
from tests.test_judge_backends import FakeTime

SPEC = "m@openai"
YES = Reply("JUDGMENT: True", "stop", 10, 2, "served-1")


def service_of(call, options: JudgeOptions = DEFAULTS, **pool) -> tuple[JudgeService, FakeTime]:
    moved = FakeTime()
    pool.setdefault("concurrency", options.concurrency)
    made = Pool(
        clock=moved.clock, sleep=moved.sleep, rng=random.Random(3), max_calls=options.max_calls, **pool
    )
    return JudgeService({"t": SPEC}, options, made, {SPEC: Connection("openai", "m", call)}), moved


def ask_all(service: JudgeService, golds: list[str]) -> list:
    async def run():
        async with service:
            judge = service.for_task("t")
            return await asyncio.gather(
                *(judge.ask("answer_equivalence", question="", answer="2", gold=gold) for gold in golds)
            )

    return asyncio.run(run())


def test_identical_questions_are_asked_and_billed_once():
    calls = []
    service, _ = service_of(lambda question, limit: calls.append(1) or YES)
    verdicts = ask_all(service, ["a", "a", "b", "a"])
    assert len(calls) == 2
    assert [v.value for v in verdicts] == [True] * 4
    assert sum(v.prompt_tokens for v in verdicts) == 20
    assert service.summary()["tasks"]["t"]["asked"] == 4


def test_the_limit_starts_small_and_grows_to_the_cap():
    lock, flying, most = threading.Lock(), 0, []

    def call(question, limit):
        nonlocal flying
        with lock:
            flying += 1
            most.append(flying)
        time.sleep(0.01)
        with lock:
            flying -= 1
        return YES

    service, _ = service_of(call, JudgeOptions(concurrency=40))
    ask_all(service, [str(n) for n in range(300)])
    assert max(most[:START]) <= START
    assert START < max(most) <= 40
    assert service.pool.limit.now == 40
    assert service.pool.limit.in_work == 0


def test_a_round_of_failures_shrinks_the_limit_once():
    limit = Limit(64)
    for _ in range(16):
        limit.shrink(sent=0.0, at=1.0)
    assert int(limit.now) == 10
    limit.shrink(sent=2.0, at=3.0)
    assert int(limit.now) == 7
    for _ in range(7):
        limit.grow()
    assert int(limit.now) == 8


def test_retry_after_holds_back_everybody():
    moved = FakeTime()
    sent: list[float] = []

    def call(question, limit):
        sent.append(moved.now)
        if len(sent) == 1:
            raise Failure("retry", "HTTP 429", 30.0, 429)
        return YES

    made = Pool(1, clock=moved.clock, sleep=moved.sleep, rng=random.Random(3))
    service = JudgeService({"t": SPEC}, pool=made, connections={SPEC: Connection("openai", "m", call)})
    ask_all(service, ["a", "b", "c"])
    assert len(sent) == 4
    assert min(sent[1:]) >= 30


FATAL = [
    ("no_credentials", "no_credentials"),
    ("fatal", "failed"),
]


@pytest.mark.parametrize(("kind", "status"), FATAL)
def test_a_fatal_failure_ends_judging_and_keeps_what_was_judged(kind, status, tmp_path):
    calls = Counter()

    def call(asked, limit):
        calls["n"] += 1
        if calls["n"] > 5:
            raise Failure(kind, "HTTP 401")
        return YES

    service, _ = service_of(call, JudgeOptions(cache_dir=tmp_path), concurrency=1)
    verdicts = ask_all(service, [str(n) for n in range(20)])
    assert Counter(v.status for v in verdicts) == {"ok": 5, status: 15}
    assert calls["n"] == 6
    assert "401" in service.ended
    again, _ = service_of(lambda asked, limit: YES, JudgeOptions(cache_dir=tmp_path))
    assert sum(v.cached for v in ask_all(again, [str(n) for n in range(20)])) == 5


def test_what_is_cached_is_answered_after_judging_has_ended(tmp_path):
    first, _ = service_of(lambda asked, limit: YES, JudgeOptions(cache_dir=tmp_path))
    ask_all(first, ["a"])

    def call(asked, limit):
        raise Failure("fatal", "HTTP 404")

    second, _ = service_of(call, JudgeOptions(cache_dir=tmp_path), concurrency=1)
    assert [v.status for v in ask_all(second, ["b", "a"])] == ["failed", "ok"]


def test_the_allowed_calls():
    calls = []
    service, _ = service_of(lambda question, limit: calls.append(1) or YES, JudgeOptions(max_calls=7))
    verdicts = ask_all(service, [str(n) for n in range(50)])
    assert len(calls) == 7
    assert Counter(v.status for v in verdicts) == {"ok": 7, "failed": 43}
    assert "7 judge calls" in service.ended


def test_a_judge_that_is_not_there_is_given_up():
    calls = []

    def call(question, limit):
        calls.append(1)
        raise Failure("retry", "connection refused")

    service, _ = service_of(call, attempts=3)
    assert {v.status for v in ask_all(service, [str(n) for n in range(500)])} == {"failed"}
    assert service.ended
    assert len(calls) <= 3 * (LOST_IN_A_ROW + START)


def test_an_unknown_error_of_an_sdk_costs_one_question():
    def call(asked, limit):
        if "\nboom\n" in asked.prompt:
            raise RuntimeError("surprise")
        return YES

    service, _ = service_of(call)
    assert [v.status for v in ask_all(service, ["a", "boom", "c"])] == ["ok", "failed", "ok"]
    assert service.ended is None


def test_a_reply_that_ended_before_it_began_gets_more_room():
    limits = []

    def call(asked, limit):
        limits.append(limit)
        return Reply("", "length") if limit < 4000 else YES

    service, _ = service_of(call, concurrency=1)
    assert [v.status for v in ask_all(service, ["a", "b"])] == ["ok", "ok"]
    assert limits == [1024, 1024, 4096, 4096]  # "b" was on its way when "a" taught us
    assert service.summary()["adaptations"][SPEC]


UNREADABLE = [
    Reply("I think so"),
    Reply(""),
    Reply(None),
    Reply("JUDGMENT: True", "filtered"),
    Reply("x", "length"),
]


@pytest.mark.parametrize("reply", UNREADABLE, ids=repr)
def test_only_readable_replies_are_kept(reply, tmp_path):
    service, _ = service_of(lambda asked, limit: reply, JudgeOptions(cache_dir=tmp_path))
    assert ask_all(service, ["a"])[0].value is None
    with sqlite3.connect(tmp_path / FILE) as db:
        assert db.execute("select count(*) from judgements").fetchone() == (0,)
    db.close()


def test_a_partly_readable_reply_is_used_and_not_kept(tmp_path):
    calls = []
    reply = Reply("JUDGMENT 1: True")
    for _ in range(2):
        service, _ = service_of(
            lambda asked, limit: calls.append(1) or reply, JudgeOptions(cache_dir=tmp_path)
        )

        async def run(service=service):
            async with service:
                return await service.for_task("t").ask("claim_support", claims=["a b", "c d"], context="e")

        assert asyncio.run(run()).value == [True, None]
    assert len(calls) == 2


KEYS = [
    ("openai", "m", {"max_tokens": 9}, "a"),
    ("azure_openai", "m", {"max_tokens": 9}, "a"),
    ("openai", "n", {"max_tokens": 9}, "a"),
    ("openai", "m", {"max_tokens": 8}, "a"),
    ("openai", "m", {"max_tokens": 9}, "b"),
]


def test_what_makes_a_question_another_one():
    made = {
        key(
            backend,
            model,
            parameters,
            question("answer_equivalence", {"question": "", "answer": "", "gold": g}),
        )
        for backend, model, parameters, g in KEYS
    }
    assert len(made) == len(KEYS)


def test_two_runs_share_a_cache(tmp_path):
    with_cache = [Cache(tmp_path) for _ in range(2)]

    def fill(cache: Cache, start: int) -> None:
        for n in range(start, start + 200):
            cache.put(f"k{n}", "m", YES)

    threads = [threading.Thread(target=fill, args=(cache, n * 100)) for n, cache in enumerate(with_cache)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [cache.errors for cache in with_cache] == [0, 0]
    assert all(with_cache[0].get(f"k{n}") == YES for n in range(300))
    for cache in with_cache:
        cache.close()


def test_a_broken_cache_is_put_aside(tmp_path):
    (tmp_path / FILE).write_bytes(b"no database" * 1000)
    cache = Cache(tmp_path)
    cache.put("k", "m", YES)
    assert cache.get("k") == YES
    cache.close()
    assert len(list(tmp_path.glob("*.broken-*"))) == 1


def test_check_asks_each_judge_once_and_says_what_is_wrong():
    calls = []
    service, _ = service_of(lambda asked, limit: calls.append(1) or YES)

    async def run():
        async with service:
            return await service.check()

    assert asyncio.run(run()) == {SPEC: "served-1"}
    assert len(calls) == 1

    def refused(asked, limit):
        raise Failure("no_credentials", "HTTP 401: the key was refused")

    service, _ = service_of(refused)
    with pytest.raises(JudgeFatal, match="key was refused"):
        asyncio.run(service.check())


def test_the_offline_judge_says_so_and_keeps_nothing(tmp_path):
    options = JudgeOptions(override="overlap@builtin", cache_dir=tmp_path)
    service = JudgeService({"t": SPEC}, options)
    assert ask_all(service, ["2"])[0].value is True
    assert service.summary()["notice"] == "offline demo judge, not for reporting"
    with sqlite3.connect(tmp_path / FILE) as db:
        assert db.execute("select count(*) from judgements").fetchone() == (0,)
    db.close()


def test_a_recorder_keeps_what_was_said():
    service, _ = service_of(lambda asked, limit: YES)

    async def run():
        async with service:
            recorder = Recorder(service.for_task("t"))
            await recorder.ask("answer_equivalence", question="", answer="2", gold="2")
            return recorder.judgements

    said = {"mode": "answer_equivalence", "value": True, "status": "ok", "reply": "JUDGMENT: True"}
    assert asyncio.run(run()) == [said]


# --- outages
# -----------------------------------------------------------------------------------------------------

CONTEXT, TURNS = "context_scope_safety_citation/", "instructions_style_tools_turns_judge_comparison/"
ROWS = [
    *(("ragtruth.subset", row["input"]) for row in golden_rows(CONTEXT + "ragtruth.subset.jsonl")),
    *(("eli5.subset", row["input"]) for row in golden_rows(CONTEXT + "eli5.subset.jsonl")),
    *(
        ("harmbench.subset", row["input"])
        for row in golden_rows(CONTEXT + "harmbench.subset.jsonl")
        if row["input"]["side"] == "unsafe"
    ),
    *(("followbench.subset", row) for row in golden_rows(TURNS + "followbench.subset.jsonl")),
    *(("mtbench.turn2", row) for row in golden_rows(TURNS + "mtbench.turn2.jsonl")),
]
TEXTS = {"reason", "extracted", "refusal_class", "outcome"}


def scores(call) -> list[dict]:
    moved = FakeTime()
    made = Pool(64, attempts=2, clock=moved.clock, sleep=moved.sleep, rng=random.Random(3))
    tasks = {task: SPEC for task, _ in ROWS}
    service = JudgeService(tasks, pool=made, connections={SPEC: Connection("openai", "m", call)})

    async def run():
        async with service:
            return await asyncio.gather(*(score_row(t, row, service.for_task(t)) for t, row in ROWS))

    return asyncio.run(run())


@pytest.mark.parametrize("seed", range(5))
def test_an_outage_takes_values_away_and_changes_none(seed):
    undisturbed = scores(builtin.call)
    rng, lock = random.Random(seed), threading.Lock()
    wrong = [
        Failure("retry", "HTTP 429", 1.0, 429),
        Failure("retry", "HTTP 500", None, 500),
        Failure("filtered", "HTTP 400"),
        Failure("retry", "dropped"),
        Reply(""),
        Reply(None),
        Reply("Sign in"),
        Reply("I'm sorry, but I can't assist with this."),
        Reply("JUDGMENT 1: True\nCLASSIFICATION: COMPL", "length"),
        Reply(None, "filtered"),
    ]

    def call(asked, limit):
        with lock:
            chosen = rng.choice(wrong) if rng.random() < 0.3 else None
        if isinstance(chosen, Failure):
            raise chosen
        return chosen or builtin.call(asked, limit)

    lost = 0
    for before, after in zip(undisturbed, scores(call), strict=True):
        missing = [
            name for name in before if before[name] is not None and after[name] is None and name not in TEXTS
        ]
        changed = [name for name in before if name not in TEXTS and after[name] not in (before[name], None)]
        assert not changed
        if missing:
            lost += 1
            assert after["reason"].startswith("judge_")
    assert lost > 10


# --- killed and run again
# ----------------------------------------------------------------------------------------

CHILD = """
import asyncio, sys
from pathlib import Path
from evaluation.judge.service import JudgeOptions, JudgeService
async def main():
    async with JudgeService({"t": "m@openai"}, JudgeOptions(cache_dir=Path(sys.argv[1]))) as service:
        judge = service.for_task("t")
        asked = (judge.ask("answer_equivalence", question="", answer="2", gold=str(n)) for n in range(300))
        verdicts = await asyncio.gather(*asked)
    print(sum(v.value is True for v in verdicts))
asyncio.run(main())
"""


def test_a_killed_run_pays_nothing_twice(tmp_path):
    log = tmp_path / "log"
    log.touch()
    command = [sys.executable, "-m", "tests.judge_server", "0.05", str(log)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        port = server.stdout.readline().strip()
        environment = {
            **os.environ,
            "OPENAI_API_KEY": "x",
            "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
            "PYTHONPATH": str(ROOT),
        }
        child = [sys.executable, "-c", CHILD, str(tmp_path / "cache")]
        killed = subprocess.Popen(child, env=environment, stdout=subprocess.PIPE, cwd=ROOT)
        while len(log.read_text().splitlines()) < 80:
            assert killed.poll() is None
            time.sleep(0.005)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        killed.stdout.close()
        seen = Counter(log.read_text().split())
        assert len(seen) < 300
        again = subprocess.run(child, env=environment, capture_output=True, text=True, cwd=ROOT, timeout=120)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    assert again.stdout.strip() == "300", again.stderr
    times = Counter(log.read_text().split())
    assert len(times) == 300
    assert set(times.values()) <= {1, 2}
    # only what was in flight when the run died is asked again
    assert sum(n - 1 for n in times.values()) <= 64


def test_the_package_needs_no_sdk(tmp_path):
    script = (
        "import sys, evaluation.judge.service\n"
        "print([m for m in ('openai', 'google.genai', 'boto3', 'pandas', 'numpy') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=Path(ROOT), check=True, timeout=60
    )
    assert out.stdout.strip() == "[]"
