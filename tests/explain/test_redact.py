import pytest

from bringup.collect.recorded import decode_facts, encode_facts
from bringup.explain.redact import Private, redact, redact_struct
from bringup.facts import Distribution, Facts, Known, Library, Variable

ALICE = Private(hosts=("gpu-box7", "gpu-box7.lab.example"), users=("alice",), homes=("/srv/people/alice",))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/bob/venv/lib/x.so of bob", "~/venv/lib/x.so of [user]"),
        ("/Users/carol/v", "~/v"),
        ("/srv/people/alice/env/bin", "~/env/bin"),
        ("host gpu-box7.lab.example and gpu-box7", "host [host] and [host]"),
        ("run by alice", "run by [user]"),
        ("https://alice:pw@index.example/simple", "https://[credentials]@index.example/simple"),
        (
            "https://x.example/w.whl?X-Amz-Signature=abc&token=def",
            "https://x.example/w.whl?X-Amz-Signature=[secret]&token=[secret]",
        ),
        ("HF_TOKEN=hf_abcdefghijklmnopqrst", "HF_TOKEN=[secret]"),
        ("hf_abcdefghijklmnopqrst in a log", "[token] in a log"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer [token]"),
        ("listening on 192.168.3.17:30000", "listening on [address]:30000"),
        ("peer fe80::1ff:fe23:4567:890a", "peer [address]"),
        ("mac 3c:ec:ef:01:02:03", "mac [mac]"),
        ("GPU-5b2c0e38-0b1c-4d5e-8f00-1234567890ab", "GPU-[uuid]"),
        ("mail bob@lab.example", "mail [mail]"),
        ("ssh://alice@box.example/pct/200?env=/opt/v", "ssh://[host]/pct/200?env=/opt/v"),
    ],
)
def test_takes_out(text: str, expected: str) -> None:
    assert redact(text, ALICE) == expected


@pytest.mark.parametrize(
    "text",
    [
        "nvidia-cudnn-cu12 9.10.2.21 and nvidia-curand-cu12==10.3.9.90",
        "nvidia_cudnn_cu12-9.10.2.21-py3-none-any.whl",
        "driver 580.95.05, CUDA 13.0, torch 2.11.0, cccl 13.3.5.0.6",
        "localhost:30000 and 127.0.0.1",
        "sgl_kernel/sm100/common_ops.abi3.so: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib",
        "c10::cuda::check(int) and std::vector<at::Tensor>",
        "/usr/local/cuda-13.0/lib64 and /root/env",
        "stage import at 12:30:45",
        "tokenizers==0.23.2 and tokenizers: 0.23.2",
        "flashinfer 0.2.1.1.post7",
    ],
)
def test_leaves_what_a_report_is_about(text: str) -> None:
    assert redact(text, ALICE) == text


def test_does_it_once() -> None:
    text = "/home/bob/x HF_TOKEN=hf_abcdefghijklmnopqrst 10.0.0.3 ssh://bob@h/x gpu-box7 https://u:p@i/x"
    once = redact(text, ALICE)
    assert redact(once, ALICE) == once


def test_everyday_words_that_are_names_stay() -> None:
    assert redact("root cause of torch", Private(users=("root",), hosts=("torch",))) == "root cause of torch"


def test_a_struct_keeps_symbols_and_versions_and_loses_people() -> None:
    library = Library(
        "a.so", root="/home/bob/env", imports="alice_v1\nbob", version_needs=(("libc.so.6", ("GLIBC_2.34",)),)
    )
    facts = Facts(
        target='of bob at "C:\\x" TOKEN=abc\\',
        distributions=Known((Distribution("nvidia-cudnn-cu12", "9.10.2.21"),), "/home/bob/env"),
        libraries=Known((library,), "x"),
        variables=Known((Variable("MASTER_ADDR", "10.1.2.3"), Variable("HF_HOME", "/home/bob/hf")), "environment"),
    )
    found = redact_struct(facts, ALICE)
    again = decode_facts(encode_facts(found), "x")
    assert found.target == 'of [user] at "C:\\x" TOKEN=[secret]'
    for one in (found, again):
        assert isinstance(one.libraries, Known)
        assert isinstance(one.distributions, Known)
        assert isinstance(one.variables, Known)
        assert one.libraries.value[0].imports == library.imports
        assert one.libraries.value[0].root == "~/env"
        assert one.distributions.value[0].version == "9.10.2.21"
        assert [item.value for item in one.variables.value] == ["[address]", "~/hf"]
