"""A study is checked whole, and every problem of it is named."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underdog.core.study import TABLES, Study, read_study

RUNNERS = ["local", "replay"]
WHOLE = """
[workload]
name = "gpt"
command = ["python", "train.py", "--batch", "{batch}", 3]
pattern = 'rate=(?P<rate>\\S+)'
samples_per_step = 16
[knobs]
batch = [8, 16, 32]
compile = [true, false]
[candidates]
offers = "offers.csv"
where = "accelerator_count > 0"
purchase = "spot"
needs = ["flash-attention-3", "fp64", "fp64"]
limit = 100
[utility]
by = "dollars_to_train, hours_to_train"
tolerance = "10%"
samples = 300e6
[constraints]
deadline = "48h"
budget = 200
[search]
budget = 20
max_trials = 12
parallel = 2
deadline = "2h"
seed = 7
[runner]
name = "local"
test = "90s"
precision = 0.05
timeout = "3m"
price = 1.5
"""


def test_everything_that_a_study_may_say() -> None:
    study, problems = read_study(WHOLE, {}, RUNNERS)
    assert problems == []
    assert study == Study(
        workload="gpt",
        command=("python", "train.py", "--batch", "{batch}", "3"),
        pattern="rate=(?P<rate>\\S+)",
        samples_per_step=16.0,
        knobs={"batch": ("8", "16", "32"), "compile": ("true", "false")},
        offers="offers.csv",
        where="accelerator_count > 0",
        purchase=("spot",),
        needs=("flash-attention-3", "fp64"),
        limit=100,
        by="dollars_to_train, hours_to_train",
        tolerance=0.1,
        samples=3e8,
        job_deadline=48 * 3600.0,
        job_budget=200.0,
        budget=20.0,
        max_trials=12,
        parallel=2,
        deadline=7200.0,
        seed=7,
        runner="local",
        test=90.0,
        precision=0.05,
        timeout=180.0,
        price=1.5,
    )
    assert study.utility().first.better == "lower"
    assert study.condition() is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serch]\nbudget = 3", "no table [serch]. Did you mean 'search'?"),
        ("[search]\nbugdet = 3", "[search] has no 'bugdet'. Did you mean 'budget'?"),
        ("[search]\nbudget = 0", "[search] budget: '0' is not a positive finite number."),
        ("[search]\nbudget = -3", "'-3' is not a positive"),
        ("[search]\nbudget = nan", "'nan' is not a positive"),
        ("[search]\nbudget = inf", "'inf' is not a positive"),
        ("[search]\nbudget = true", "'True' is not a number"),
        ("[search]\nbudget = '3'", "'3' is not a number"),
        ("[search]\nmax_trials = 0", "not a whole number from 1"),
        ("[search]\nmax_trials = 2.5", "not a whole number from 1"),
        ("[search]\nparallel = 65", "from 1 to 64"),
        ("[search]\nseed = -1", "from 0 to"),
        ("[search]\ndeadline = 'soon'", "'soon' is not a duration"),
        ("[utility]\nby = 'samples_per_dolar'", "Did you mean 'samples_per_dollar'?"),
        ("[utility]\nby = 'dollars_to_train'", "samples the whole job has"),
        ("[utility]\nbetter = 'hihger'", "Did you mean 'higher'?"),
        ("[utility]\ntolerance = '120%'", "'120%' is not a share"),
        ("[candidates]\nwhere = 'vcpus >'", "it ends too early"),
        ("[candidates]\npurchase = ['sopt']", "Did you mean 'spot'?"),
        ("[candidates]\nneeds = []", "'[]' is not a list of names"),
        ("[candidates]\nneeds = ['fp64', 3]", "'3' is not a text"),
        ("[constraints]\ndeadline = '2h'", "[constraints] deadline needs [utility] samples"),
        ("[knobs]\nbatch = []", "[knobs] batch"),
        ("[knobs]\nbatch = 8", "[knobs] batch"),
        ("[knobs]\n'a b' = [1]", "[knobs] a b"),
        ("[knobs]\nbatch = [nan]", "not finite"),
        ("[workload]\nname = ''", "[workload] name"),
        ("[workload]\ncommand = 'python train.py'", "not a list of words"),
        ("[runner]\nname = 'relpay'", "no runner 'relpay'. Did you mean 'replay'?"),
        ("[runner]\nname = 'replay'", "A replay needs recorded trials"),
        ("[runner]\ntrials = 'trials.csv'", "Recorded trials are for the replay"),
        ("workload = 'gpt'", "'workload' is a table"),
        ("[workload", "It is not TOML"),
        ("a = " + "[" * 3000 + "]" * 3000, "It is not TOML"),
    ],
)
def test_a_problem_is_named(text: str, said: str) -> None:
    _, problems = read_study(text, {}, RUNNERS)
    assert any(said in problem for problem in problems), problems


def test_all_problems_are_told_at_once() -> None:
    text = "[search]\nbudget = 0\nmax_trials = 0\n[utility]\nby = 'x y'\n[runner]\nname = 'x'"
    _, problems = read_study(text, {}, RUNNERS)
    assert len(problems) == 4


def test_flags_stand_over_the_file() -> None:
    given = {"budget": 5.0, "max_trials": 3, "by": "samples_per_second", "runner": "local"}
    study, problems = read_study(WHOLE, given, RUNNERS)
    assert problems == ["A tolerance needs a second rule to decide within it, and "
        "'samples_per_second' is one alone. Write it like: --by \"dollars_to_train, "
        'hours_to_train" --tolerance 10%']  # fmt: skip
    assert (study.budget, study.max_trials) == (5.0, 3)


def test_a_study_is_the_same_one_under_other_limits_and_paths() -> None:
    study, _ = read_study(WHOLE, {}, RUNNERS)
    more, _ = read_study(WHOLE, {"budget": 99.0, "max_trials": 50, "offers": "moved.csv"}, RUNNERS)
    seed, _ = read_study(WHOLE, {"seed": 8}, RUNNERS)
    assert study.id({"offers": "abc"}) == more.id({"offers": "abc"})
    assert study.id({"offers": "abc"}) != study.id({"offers": "abd"})
    assert study.id({}) != seed.id({})


def test_what_is_needed_is_a_part_of_what_is_asked() -> None:
    named = {needs: Study(needs=needs).id({}) for needs in ((), ("fp64",), ("bf16",))}
    assert len(set(named.values())) == 3
    assert named[()] == "study-6c720e4027ba"  # as before there were needs


toml_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from([(t, k) for t, keys in TABLES.items() for k in keys]), toml_values)
def test_no_value_of_any_key_breaks_the_reader(key: tuple[str, str], value: object) -> None:
    target, read = TABLES[key[0]][key[1]]
    found = None
    with contextlib.suppress(ValueError):
        found = read(value)
    assert found == found, f"{target} became NaN"


@pytest.mark.parametrize("text", ["[search\nx = 1", "a = ", "[" * 5000])
def test_of_what_is_no_toml_only_that_is_told(text: str) -> None:
    _, problems = read_study(text, {"budget": -1.0, "trials": "t.csv"}, ("local", "replay"))
    assert len(problems) == 1
    assert "not TOML" in problems[0]
