"""The rules about flags that the parser refuses, or takes for less than they seem."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ome.engines import Finding

Found = Callable[..., list[Finding]]
ARGS = ["--host=0.0.0.0", "--port=8080"]

# the version, the added arguments, the codes found
CASES: list[tuple[str, list[str], list[str]]] = [
    ("", ["--pp=2"], []),
    ("0.5.3", ["--pp=2"], ["SGLangFlagPrefix"]),
    ("0.5.4", ["--pp=2"], ["SGLangFlagAmbiguous"]),
    ("0.5.23", ["--pp", "2"], ["SGLangFlagAmbiguous"]),
    ("", ["--tp=2"], ["SGLangFlagPrefix"]),
    ("0.5.23", ["--tp", "2"], ["SGLangFlagPrefix"]),
    ("0.5.23", ["--dp", "1"], ["SGLangFlagPrefix"]),
    ("", ["--ep=2"], []),
    ("0.5.23", ["--ep=2"], []),
    ("0.4.6.post5", ["--ep=2"], ["SGLangFlagAmbiguous"]),
    ("", ["--quant=fp8"], ["SGLangFlagAmbiguous"]),
    ("", ["--mem-frac=0.9", "--nccl-init=a:1"], []),
    ("", ["-tp", "2"], ["SGLangFlagSpelling"]),
    ("0.5.23", ["-tp=2"], ["SGLangFlagSpelling"]),
    ("", ["--tp_size=2"], ["SGLangFlagSpelling"]),
    ("0.5.23", ["--trust_remote_code"], ["SGLangFlagSpelling"]),
    ("", ["--tp-size 2"], ["SGLangFlagSpelling"]),
    ("", ["-h"], []),
    ("", ["--context-length", "-1"], []),
    ("", ["--tp-size=1", "--tensor-parallel-size=1"], []),
    ("", ["--context-length=1", "--context-length=2"], ["SGLangFlagRepeated"]),
    ("", ["--pp-size=1", "--pipeline-parallel-size", "2"], ["SGLangFlagRepeated"]),
    ("", ["--mem-frac=0.8", "--mem-fraction-static=0.9"], ["SGLangFlagRepeated"]),
    ("", ["--enable-metrics", "--enable-metrics"], []),
    ("", ["--enable-ep-moe"], []),
    ("0.5.4", ["--enable-ep-moe"], []),
    ("0.5.5", ["--enable-ep-moe"], ["SGLangFlagRemoved"]),
    ("0.5.5.post3", ["--enable-deepep-moe"], ["SGLangFlagRemoved"]),
    ("0.5.7", ["--enable-deepep-moe"], ["SGLangFlagRemoved"]),
    ("0.5.99", ["--enable-deepep-moe"], ["SGLangFlagRemoved"]),
    ("0.5.5.post3", ["--prefill-round-robin-balance"], []),
    ("0.5.20", ["--prefill-round-robin-balance"], ["SGLangFlagRemoved"]),
    ("0.5.5.post3", ["--attn-dp-size=2"], ["SGLangFlagUnknown"]),
    ("0.5.23", ["--no-such-flag"], ["SGLangFlagUnknown"]),
    ("0.5.22", ["--no-such-flag"], []),
    ("", ["--no-such-flag"], []),
]


@pytest.mark.parametrize("version, more, codes", CASES)
def test_spelling(found: Found, version: str, more: list[str], codes: list[str]) -> None:
    image = f"lmsysorg/sglang:v{version}" if version else "lmsysorg/sglang:latest"
    got = [one for one in found(image=image, args=ARGS, more=more) if one.code[:10] == "SGLangFlag"]
    assert [one.code for one in got] == codes
    assert all(one.path.startswith("args[") and one.fix for one in got)


# the version, the added arguments, the message and the fix of the one finding
MESSAGES: list[tuple[str, list[str], str, str]] = [
    (
        "0.5.4",
        ["--pp=2"],
        "--pp fits several options of SGLang 0.5.4 (--pp-max-micro-batch-size, --pp-size), so its "
        "parser stops",
        "write --pp-size",
    ),
    (
        "0.5.23",
        ["-tp=2"],
        "-tp is refused by SGLang's parser: a long flag takes two dashes",
        "write --tp-size",
    ),
    (
        "0.5.23",
        ["--tp_size=2"],
        "--tp_size is refused by SGLang's parser: its flags have dashes, not underscores",
        "write --tp-size",
    ),
    (
        "0.5.23",
        ["--not_a_flag=2"],
        "--not_a_flag is refused by SGLang's parser: its flags have dashes, not underscores",
        "remove it",
    ),
    (
        "0.5.5",
        ["--enable-ep-moe"],
        "SGLang 0.5.5 no longer has --enable-ep-moe; it was last seen in 0.5.4",
        "use --ep-size",
    ),
    (
        "0.5.5.post3",
        ["--use-ray"],
        "SGLang 0.5.5.post3 has no flag --use-ray yet; it is first seen in 0.5.10",
        "remove it, or use a newer image",
    ),
    (
        "0.5.23",
        ["--mem-frac=0.8", "--mem-fraction-static=0.9"],
        "--mem-fraction-static is given again with another value; SGLang takes the last one, 0.9",
        "keep one of them",
    ),
    (
        "0.5.23",
        ["--tp-size=1", "--tensor-parallel-size=2"],
        "--tensor-parallel-size is given again with another value; SGLang takes the last one, 2",
        "keep one of --tp-size, --tensor-parallel-size",
    ),
]


@pytest.mark.parametrize("version, more, message, fix", MESSAGES)
def test_messages(found: Found, version: str, more: list[str], message: str, fix: str) -> None:
    (finding,) = found(image=f"lmsysorg/sglang:v{version}", args=ARGS, more=more)
    assert (finding.message, finding.fix) == (message, fix)


def test_serve_has_a_flag_of_its_own(found: Found) -> None:
    words = ["m", *ARGS, "--model-type=llm", "--tp_size=1"]
    got = found(command=["sglang", "serve"], args=words, image="lmsysorg/sglang:v0.5.23")
    assert [one.code for one in got] == ["SGLangFlagSpelling"]


@pytest.mark.parametrize("more", [["--num-gpus=2"], ["--model-type=diffusion"]])
def test_diffusion_has_another_parser(found: Found, more: list[str]) -> None:
    words = ["m", *ARGS, *more, "--tp_size=1"]
    assert found(command=["sglang", "serve"], args=words, image="lmsysorg/sglang:v0.5.23") == []
