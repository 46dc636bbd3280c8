"""`python -m tests.promise`: thousands of random models, by hand."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.promise.asking import Questioner, Tally
from tests.promise.models import draw
from tests.promise.routes import FORMS


def main() -> int:
    """Ask models; print each violation as it is found, and a summary."""
    parser = argparse.ArgumentParser(prog="python -m tests.promise", description=__doc__)
    parser.add_argument("--models", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the first model")
    parser.add_argument("--most", type=int, default=40, help="the most states of a model")
    parser.add_argument("--routes", default="tra", help=f"of {', '.join(FORMS)}, or all")
    parser.add_argument(
        "--rotate", action="store_true", help="ask each model by one of the routes, in turn"
    )
    parser.add_argument("--settings", default="", help="names of settings; all by default")
    parser.add_argument("--families", default="", help='kinds of questions, such as "P F,R C"')
    parser.add_argument("--seconds", type=float, default=30.0, help="for a model and a setting")
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="ask no more after them"
    )
    parser.add_argument("--quiet", action="store_true", help="print no violation as it is found")
    given = parser.parse_args()
    routes = list(FORMS) if given.routes == "all" else given.routes.split(",")
    settings = [name for name in given.settings.split(",") if name]
    families = [name for name in given.families.split(",") if name]
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, Questioner(Path(folder), given.seconds) as asking:
        asked = 0
        for seed in range(given.seed, given.seed + given.models):
            if time.perf_counter() - began > 60.0 * given.minutes:
                break
            asked += 1
            case = draw(seed, most=given.most)
            by = [routes[asked % len(routes)]] if given.rotate else routes
            for found in asking.ask(seed, by, settings, case=case, families=families):
                if not given.quiet:
                    print(found.text(), flush=True)
        summary(asking.tally, asked, time.perf_counter() - began)
        return 1 if asking.tally.violations else 0


def summary(tally: Tally, count: int, seconds: float) -> None:
    """Print how many answers there were, and the smallest violation of each kind."""
    outcomes = ", ".join(f"{number} {name}" for name, number in tally.outcomes.most_common())
    print(f"\n{count} models, {tally.asked} answers in {seconds:.0f} s: {outcomes}")
    print(f"{len(tally.violations)} violations, {len(tally.vague)} vague errors")
    for title, found in (("VIOLATION", tally.violations), ("VAGUE", tally.vague)):
        for example, number in tally.smallest(found):
            print(f"\n{title} {' / '.join(example.kind)}: {number}\n{example.text()}")
    for error, number in tally.refusals.most_common(20):
        print(f"{number} x {error}")


if __name__ == "__main__":
    sys.exit(main())
