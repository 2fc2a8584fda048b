"""The child process of symbolic.py: answers one JSON line with one word. Run as a script, imports nothing
of ours.

It bounds itself (memory, no files, an alarm that ends it), in case the parent that watches it is gone.
"""

import json
import logging
import signal
import sys

MEMORY = 2 << 30
ALARM_S = 150


def limit() -> None:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError):
        pass  # not on this system; the parent's timer remains


def alarm(seconds: int) -> None:
    if hasattr(signal, "alarm"):
        signal.alarm(seconds)  # no handler: the process ends


def main() -> None:
    limit()
    alarm(ALARM_S)
    logging.disable(logging.CRITICAL)
    try:
        from math_verify import LatexExtractionConfig, parse, verify

        config = [LatexExtractionConfig()]
        parse("$\\frac{1}{2}$", extraction_config=config, parsing_timeout=None)
    except Exception as error:
        print(f"{type(error).__name__}: {error}".replace("\n", " ")[:300], flush=True)
        return
    print("ready", flush=True)
    alarm(0)
    for line in sys.stdin:
        alarm(ALARM_S)
        try:
            question = json.loads(line)
            gold, answer = (
                parse(
                    f"${question[key]}$",
                    extraction_config=config,
                    parsing_timeout=None,
                    fallback_mode="no_fallback",
                )
                for key in ("gold", "answer")
            )
            if not gold or not answer:
                verdict = "unparsed"
            else:
                equal = verify(gold, answer, float_rounding=12, numeric_precision=40, timeout_seconds=None)
                verdict = "equal" if equal else "unequal"
        except MemoryError:
            verdict = "timeout"
        except Exception:
            verdict = "unparsed"
        print(verdict, flush=True)
        alarm(0)


if __name__ == "__main__":
    main()
