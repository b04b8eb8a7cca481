"""Installs the dependencies, builds, and runs every test: unit, integration, conformance, and end
to end on a real Kubernetes. Run as root, or with sudo for the parts that need root."""
import argparse
import os
import signal
import sys
from pathlib import Path

import locks
import processes
from check import Check
from everything import LOOPS, Busy, Everything
from stages import Failed

CI_LIMIT = 85  # minutes; CI ends a check after 90 and then keeps no logs
EPILOG = """\
A suite whose programs, files, tools and machine are as when it last passed is skipped by name.
What is kept for that lies in $PENSTOCK_CACHE (else ~/.cache/penstock) and may be removed at any
time. What failed is in build/check; stages and their times are in build/check/stages.json. The
last lines are ctest's own summary. Exit status: 0 when everything passed.

examples:
  scripts/check                  what CI runs
  scripts/check --again          also the suites that did not change
  scripts/check --all            everything there is; what passed on the same tree is kept
  scripts/check --all --again    everything once more
  scripts/check --busy           20 runs of the unit tests, 5 of the integration tests and 3 of the
                                 end-to-end tests beside four busy loops; goes on as --all does
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="check", description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true",
                        help="also every sanitizer, clang-tidy, arm64 and repetitions: hours; goes "
                        "on where an interrupted one was")
    parser.add_argument("--busy", action="store_true",
                        help="only repeat the tests beside busy loops: most of a day; goes on "
                        "where an interrupted one was")
    parser.add_argument("--loops", type=int, default=LOOPS, metavar="N",
                        help=f"busy loops beside the tests of --busy, by default {LOOPS}; fewer if "
                        "other work keeps the processors busy, such as tests/fuzz/run")
    parser.add_argument("--again", action="store_true",
                        help="run also what is known to have passed on the same inputs")
    parser.add_argument("--limit", type=float, metavar="MINUTES",
                        default=CI_LIMIT if os.environ.get("CI") == "true" else None,
                        help=f"end the tests this long after the start (with CI=true: {CI_LIMIT})")
    return parser.parse_args()


def say(text: str):
    print(text, flush=True)


def main() -> int:
    options = arguments()
    source = Path(__file__).resolve().parents[2]
    os.chdir(source)
    processes.interrupt_on(signal.SIGTERM, signal.SIGHUP)
    check = Check(source, options.all, not options.again, options.limit and options.limit * 60, say)
    try:
        with locks.alone(check.folder / "lock", "this build folder", say):
            check.prepare()
            if options.busy:
                failed = Busy(check, options.again, options.loops).run()
                say(f"-- stages\n{check.stages.table()}")
                return 1 if failed or check.stages.stopped else 0
            failed = Everything(check, options.again).run() if options.all else []
            result = check.all_tests()
            if result.passed and not options.all:
                failed = check.sanitizers()
            say(f"-- stages\n{check.stages.table()}\n")
            if failed:
                say(f"{result.summary}\ncheck: these stages failed: {', '.join(failed)}")
                return 1
            say(result.summary)
            if result.passed:
                check.noted_green()
            return 0 if result.passed else 1
    except Failed as failure:
        say(f"check: {failure}")
        return 1
    except KeyboardInterrupt:
        say("check: interrupted")
        return 130
    finally:
        processes.end_all()
        check.give_back()


if __name__ == "__main__":
    sys.exit(main())
