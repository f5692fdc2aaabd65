"""What of ``bench/gpu.py`` can be told without a GPU: that it needs one, the other side's command, rates."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from evicat.schemas.identity import ModelRef
from evicat.schemas.recipe import ModelProfile, Profile

from ...scripts import ROOT, script

SCRIPT = ROOT / "bench" / "gpu.py"
gpu = script("bench/gpu.py")

MODEL = ModelRef(name="lab/eye-9b", quantization="awq")
OURS = gpu.Ours(
    gpu.Side(seconds=20, requests=100, tokens=50_000),
    prompt_tokens=1200,
    output_tokens=80,
    words=300,
    failed=0,
)


def test_without_a_gpu_it_says_so_and_measures_nothing() -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    ended = subprocess.run([sys.executable, SCRIPT, "--model", "eye"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert "bench/gpu.py needs a GPU" in ended.stderr
    assert "nothing was measured" in ended.stderr


def test_the_other_side_gets_requests_of_the_same_make_up_and_the_same_engine(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(gpu, "weights_of", lambda *_: SimpleNamespace(location="/weights"))
    where = ModelProfile(engine="vllm", concurrency=64)
    command = gpu.bench_command(MODEL, where, Profile(), OURS, tmp_path / "bench.json", warm_up=4)
    given = dict(zip(command[5::2], command[6::2], strict=False))
    assert command[1:5] == ["-m", "vllm.entrypoints.cli.main", "bench", "throughput"]
    assert (given["--model"], given["--quantization"]) == ("/weights", "awq")
    assert (given["--num-prompts"], given["--max-num-seqs"]) == ("100", "64")
    assert given["--random-output-len"] == "80"
    assert given["--random-input-len"] == "300"
    assert json.loads(given["--limit-mm-per-prompt"])["image"] == 512


def test_flags_of_a_command_line() -> None:
    facts = {"a_b": 1, "on": True, "off": False, "none": None, "table": {"x": 0}, "list": [1, 2]}
    assert gpu.flags(facts) == ["--a-b", "1", "--on", "--table", '{"x": 0}', "--list", "1,2"]


def test_rates_add_up_to_the_seconds_that_were_measured() -> None:
    lines = dict(line.split(" = ") for line in gpu.rates(OURS, prompt_rate=10_000).splitlines())
    prompt, output = (float(lines[f"{each}_tokens_per_second"]) for each in ("prompt", "output"))
    assert 100 * 1200 / prompt + 100 * 80 / output == pytest.approx(20, rel=1e-3)


def test_rates_of_too_short_a_run_are_not_made_up() -> None:
    assert gpu.rates(OURS, prompt_rate=5_000).startswith("# answers took no time")


@pytest.mark.parametrize(
    ("tokens", "said", "code"),
    [
        (128_000, "ratio: 1.25 (within 0.9)", 0),
        (120_000, "ratio: 1.33", 0),
        (60_000, "no ratio: a request had", 1),
    ],
)
def test_a_ratio_is_told_only_of_requests_that_are_alike(tokens: int, said: str, code: int, capsys) -> None:
    ours = replace(OURS, side=gpu.Side(20, 100, 128_000))
    with pytest.raises(SystemExit) as ended:
        gpu.end(MODEL, ours, gpu.Side(seconds=25, requests=100, tokens=tokens), 10_000)
    assert ended.value.code == code
    assert said in capsys.readouterr().out


def test_no_picture_is_in_two_parts() -> None:
    warm, asked, reading = gpu.split(list(range(10)), 2, 4)
    assert [*warm, *asked, *reading] == list(range(10))
