import random
import shutil
import subprocess
import sys

import pytest

from bringup.explain.demangle import demangle, demangle_text

NAMES = {
    "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib": "c10::cuda::c10_cuda_check_implementation(int, char const*, "
    "char const*, int, bool)",
    "_ZNK2at10TensorBase14const_data_ptrIKN3c104HalfEEEPKT_v": "c10::Half const* at::TensorBase::const_data_ptr<c10::Half const>() const",
    "_ZNK2at10TensorBase14const_data_ptrIiLi0EEEPKT_v": "int const* at::TensorBase::const_data_ptr<int, 0>() const",
    "_ZTVN10__cxxabiv120__si_class_type_infoE@CXXABI_1.3": "vtable for __cxxabiv1::__si_class_type_info@CXXABI_1.3",
}
reads = pytest.mark.skipif(
    sys.version_info < (3, 11), reason="the demangler needs Python 3.11; raw names are shown below it"
)


@reads
@pytest.mark.parametrize(("raw", "readable"), NAMES.items())
def test_reads_cxx_names(raw: str, readable: str) -> None:
    assert demangle(raw) == readable


@reads
@pytest.mark.skipif(shutil.which("c++filt") is None, reason="no c++filt on this machine to compare with")
def test_agrees_with_binutils() -> None:
    raw = [name.partition("@")[0] for name in NAMES]
    done = subprocess.run(["c++filt", *raw], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [demangle(name) for name in raw]


@pytest.mark.parametrize(
    "name", ["ncclCommResume", "_Z", "_ZZZZ", "", "_ZGVbN2v_cos", "PyInit__C", "_Z" + "N" * 50_000]
)
def test_leaves_what_it_cannot_read(name: str) -> None:
    assert demangle(name) == name


def test_damaged_names_raise_nothing() -> None:
    chance = random.Random(1)
    for _ in range(2_000):
        letters = list(chance.choice(list(NAMES)))
        for _ in range(chance.randint(1, 4)):
            letters[chance.randrange(2, len(letters))] = chance.choice("_ZNKSt0123456789EIJabcRPOT")
        assert isinstance(demangle("".join(letters)), str)


@reads
def test_finds_names_in_a_text_and_nothing_else() -> None:
    text = "needs _ZN3c105ErrorC1Ev, of lib_ZN3x.so and __ZN3c105ErrorC1Ev"
    assert demangle_text(text) == "needs c10::Error::Error(), of lib_ZN3x.so and c10::Error::Error()"
