"""The rules about flags that the parser refuses, or takes for something else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ome.engines import Finding, Severity

Found = Callable[..., list[Finding]]
ARGS = ["--port=8080"]

# the version, the added arguments, the codes found
CASES: list[tuple[str, list[str], list[str]]] = [
    ("0.33.0", ["--tensor-parallel-size=1"], []),
    ("0.33.0", ["--tensor_parallel_size", "1"], []),
    ("0.33.0", ["--tensor=1"], []),
    ("0.33.0", ["-t", "1"], []),
    ("0.33.0", ["-tp", "1"], []),
    ("0.33.0", ["-tp=1"], []),
    ("0.33.0", ["-tp1"], ["VLLMFlagSpelling"]),
    ("", ["-tp1"], ["VLLMFlagSpelling"]),
    ("0.33.0", ["-n1"], []),
    ("0.33.0", ["-O3"], []),
    ("0.33.0", ["-max-model-len", "1"], ["VLLMFlagSpelling"]),
    ("0.33.0", ["--max-model-len 1"], ["VLLMFlagSpelling"]),
    ("0.33.0", ["--tp", "1"], ["VLLMFlagSpelling"]),
    ("0.33.0", ["--tp_size=1"], ["VLLMFlagSpelling"]),
    ("", ["--tp=1"], ["VLLMFlagSpelling"]),
    ("", ["--pp-size=1"], ["VLLMFlagSpelling"]),
    ("0.9.0.1", ["--ep=1"], ["VLLMFlagSpelling"]),
    ("0.33.0", ["--ep"], ["VLLMFlagPrefix"]),
    ("", ["--ep"], []),
    ("0.33.0", ["--dp=1"], ["VLLMFlagAmbiguous"]),
    ("0.33.0", ["--quant=fp8"], ["VLLMFlagAmbiguous"]),
    ("0.33.0", ["--compilation-config.mode=3", "--compilation-config.backend=x"], []),
    ("0.33.0", ["-cc.mode=3", "--compilation_config.mode=1"], ["VLLMFlagRepeated"]),
    ("0.33.0", ["-cc.x+=3", "-cc.x+=1"], []),
    ("0.33.0", ["--max-model-len=1", "--max_model_len=2"], ["VLLMFlagRepeated"]),
    ("0.33.0", ["-tp=1", "--tensor-parallel-size=1"], []),
    ("0.33.0", ["--enforce-eager", "--enforce-eager"], []),
    ("0.33.0", ["--enforce-eager", "--no-enforce-eager"], ["VLLMFlagRepeated"]),
    ("0.33.0", ["--enable-lora", "--disable-lora"], ["VLLMFlagRepeated"]),
    ("0.33.0", ["--middleware=a", "--middleware=b"], []),
    ("0.20.1", ["--swap-space=4"], ["VLLMFlagRemoved"]),
    ("0.12.0", ["--device=cuda"], ["VLLMFlagRemoved"]),
    ("0.33.0", ["--task=embed"], ["VLLMFlagRemoved"]),
    ("", ["--task=embed"], []),
    ("0.9.0.1", ["--task=embed"], []),
    ("0.12.0", ["--task=embed"], ["VLLMFlagDeprecated"]),
    ("0.9.0.1", ["--device=cuda"], ["VLLMFlagDeprecated"]),
    ("0.33.0", ["--no-such-flag"], ["VLLMFlagUnknown"]),
    ("0.33.0", ["--no_such_flag.key=1"], ["VLLMFlagUnknown"]),
    ("0.29.0", ["--no-such-flag"], []),
    ("", ["--no-such-flag"], []),
    ("0.9.0.1", ["--shutdown-timeout=9"], ["VLLMFlagUnknown"]),
    ("0.33.0", ["--grpc", "--grpc-port=1"], ["VLLMFlagExclusive"]),
    ("0.33.0", ["-dpe", "-dph", "-dpl=1"], ["VLLMFlagExclusive"]),
    ("0.33.0", ["-dpe", "--no-data-parallel-hybrid-lb"], []),
    ("0.33.0", ["-dpn=0", "-dpr=0"], ["VLLMFlagExclusive"]),
    ("0.12.0", ["-dpn=0", "-dpr=0"], []),
    ("", ["--grpc", "--grpc-port=1"], []),
    ("0.33.0", ["-h"], []),
]


@pytest.mark.parametrize("version, more, codes", CASES)
def test_spelling(found: Found, version: str, more: list[str], codes: list[str]) -> None:
    got = [one for one in found(version=version, args=ARGS, more=more) if "Flag" in one.code]
    assert [one.code for one in got] == codes
    assert all(one.path.startswith("args[") and one.fix for one in got)


# the version, the added arguments, the message and the fix of the one finding
MESSAGES: list[tuple[str, list[str], str, str]] = [
    (
        "0.33.0",
        ["--tp=1"],
        "--tp is refused by vLLM's parser: it has no such flag",
        "write --tensor-parallel-size",
    ),
    (
        "0.33.0",
        ["-tp1"],
        "-tp1 is refused by vLLM's parser: its value must be a word of its own, or follow an =",
        "write -tp",
    ),
    (
        "0.33.0",
        ["-max-model-len=1"],
        "-max-model-len is refused by vLLM's parser: a long flag takes two dashes",
        "write --max-model-len",
    ),
    (
        "0.33.0",
        ["--ep"],
        "--ep is no flag of vLLM 0.33.0, whose parser takes it for --eplb-config",
        "write --enable-expert-parallel",
    ),
    (
        "0.33.0",
        ["--task=embed"],
        "vLLM 0.33.0 no longer has --task; it was last seen in 0.12.0",
        "use --runner and --convert",
    ),
    (
        "0.12.0",
        ["--cuda_graph_sizes=1"],
        "--cuda_graph_sizes is deprecated in vLLM 0.12.0",
        "use --cudagraph-capture-sizes",
    ),
    (
        "0.33.0",
        ["-tp=1", "--tensor-parallel-size=2"],
        "--tensor-parallel-size is given again with another value; vLLM takes the last one, 2",
        "keep one of -tp, --tensor-parallel-size",
    ),
    (
        "0.33.0",
        ["--enforce-eager", "--no-enforce-eager"],
        "--no-enforce-eager is given again with another value; vLLM takes the last one, without a value",
        "keep one of them",
    ),
    (
        "0.33.0",
        ["--grpc", "--grpc-port=1"],
        "--grpc-port can't be given with --grpc: vLLM stops",
        "keep one of them",
    ),
]


@pytest.mark.parametrize("version, more, message, fix", MESSAGES)
def test_messages(found: Found, version: str, more: list[str], message: str, fix: str) -> None:
    (finding,) = found(version=version, args=ARGS, more=more)
    assert (finding.message, finding.fix) == (message, fix)


def test_a_prefix_of_another_flag_is_an_error(found: Found) -> None:
    (finding,) = found(args=ARGS, more=["--ep"])
    assert finding.severity is Severity.ERROR
