"""The rules about linking: each fires on the fault that it is about, and is silent beside it."""

from __future__ import annotations

from msgspec.structs import replace

from bringup.evaluate.registry import RULES
from bringup.facts import (
    Distribution,
    Facts,
    Host,
    Interpreter,
    Known,
    Library,
    LoadSite,
    Unknown,
    UnreadableFile,
    Variable,
)
from bringup.findings import Finding

ROOT = "/e/site-packages"
CXX11 = "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
SITE = LoadSite("kern/_C.abi3.so", "kern", 3, "import", "import", guarded=False, chain=("kern",))

LIBC = Library(
    "/lib/libc.so.6",
    soname="libc.so.6",
    exports="malloc@@GLIBC_2.2.5",
    version_definitions=("libc.so.6", "GLIBC_2.2.5"),
)
CXX = Library(
    "/lib/libstdc++.so.6",
    soname="libstdc++.so.6",
    exports="_Znwm@@GLIBCXX_3.4",
    version_definitions=("libstdc++.so.6", "GLIBCXX_3.4"),
)


def torch(exports: str = "_ZN3c104cuda4goodEv", **more: str) -> tuple[Library, ...]:
    c10 = Library("torch/lib/libc10.so", ROOT, "torch", soname="libc10.so", exports=exports)
    module = Library(
        "torch/_C.cpython-311-x86_64-linux-gnu.so",
        ROOT,
        "torch",
        needed=("libc10.so", *more.get("needed", "").split()),
        runpath=("$ORIGIN/lib", "$ORIGIN/../nvidia/cu13/lib"),
        imports=more.get("imports", ""),
    )
    return c10, module


def kernel(imports: str = "_ZN3c104cuda4goodEv", needed: tuple[str, ...] = ("libc10.so",), **more: object) -> Library:
    return Library("kern/_C.abi3.so", ROOT, "kern", needed=needed, imports=imports, **more)  # type: ignore[arg-type]


def cuda(name: str, path: str = "", exports: str = "cudaMalloc") -> Library:
    return Library(path or f"nvidia/cu13/lib/{name}", ROOT, "nvidia-cuda-runtime", soname=name, exports=exports)


def facts(*libraries: Library, site: LoadSite | None = SITE, torch_cuda: str = "13.0", **more: object) -> Facts:
    distributions = (
        Distribution(
            "torch", "2.11.0", build=(("cuda", torch_cuda),), requires=("nvidia-nccl-cu13==2.30.7",), source="torch"
        ),
        Distribution("kern", "1.0", source="kern"),
        Distribution("nvidia-cuda-runtime", "13.0.96", source="cudart"),
        Distribution("nvidia-nccl-cu13", "2.28.9", source="nccl"),
    )
    known = {
        "host": Known(Host("x86_64", "glibc 2.36", default_dirs=("/lib",)), "here"),
        "python": Known(Interpreter("3.11.7", prefix="/e"), "here"),
        "distributions": Known(distributions, "here"),
        "libraries": Known(libraries, "here"),
        "system_libraries": Known((LIBC, CXX), "here"),
        "load_sites": Known((site,) if site is not None else (), "here"),
        "variables": Known((), "here"),
    }
    return Facts(target="/e", roots=(ROOT,), **{**known, **more})  # type: ignore[arg-type]


def found(of: Facts, *codes: str) -> list[Finding]:
    """Findings of the linking rules, of all or of some."""
    chosen = [one for one in RULES if one.RULE.code.startswith(("ABI", "LIB"))]
    asked = [one for one in chosen if not any(isinstance(getattr(of, name), Unknown) for name in one.RULE.needs)]
    findings = [finding for one in asked for finding in one.check(of)]
    return [one for one in findings if not codes or one.rule in codes]


def test_a_stack_that_fits_has_no_findings() -> None:
    assert found(facts(*torch(), kernel())) == []


def test_a_symbol_of_another_torch() -> None:
    [finding] = found(facts(*torch(), kernel("_ZN3c104cuda4goodEv\n_ZN3c104cuda3badEv")))
    assert (finding.rule, finding.kind, finding.severity) == ("ABI001", "extension_built_for_other_torch", "error")
    assert finding.predicted_error == "ImportError: kern/_C.abi3.so: undefined symbol: _ZN3c104cuda3badEv"
    assert finding.detail == ("undefined symbol: _ZN3c104cuda3badEv",)
    assert finding.fatal
    assert [premise.source for premise in finding.because][1] == "torch"


def test_the_other_string_abi_is_no_other_torch() -> None:
    old, new = "_ZN3c105ErrorC1ERKSs", f"_ZN3c105ErrorC1ERK{CXX11}"
    [finding] = found(facts(*torch(f"_ZN3c104cuda4goodEv\n{new}"), kernel(old)))
    assert finding.rule == "ABI002"
    assert "_GLIBCXX_USE_CXX11_ABI=0" in finding.therefore
    [reverse] = found(facts(*torch(old), kernel(new)))
    assert "_GLIBCXX_USE_CXX11_ABI=1" in reverse.therefore
    assert found(facts(*torch(new), kernel(new))) == []


def test_a_symbol_of_its_own() -> None:
    [finding] = found(facts(*torch(), kernel("cutlass_moe_mm_sm100")))
    assert (finding.rule, finding.kind) == ("ABI003", "extension_missing_own_symbol")
    assert found(facts(*torch(), kernel("cutlass_moe_mm_sm100", exports="x")), "ABI001") == []


def test_another_cuda_major_and_what_it_hides() -> None:
    needed = ("libc10.so", "libcudart.so.12")
    of = facts(*torch(), cuda("libcudart.so.13"), kernel("_ZN3c104cuda3badEv\ncudaMalloc@libcudart.so.12", needed))
    findings = found(of)
    assert {one.rule for one in findings} == {"LIB001", "ABI001"}
    soname = next(one for one in findings if one.rule == "LIB001")
    assert soname.predicted_error.startswith("ImportError: libcudart.so.12: cannot open shared object file")
    assert soname.hints
    assert soname.order < next(one for one in findings if one.rule == "ABI001").order
    fits = facts(*torch(needed="libcudart.so.13"), cuda("libcudart.so.13"), kernel("cudaMalloc", ("libcudart.so.13",)))
    assert found(fits) == []


def test_a_cuda_library_that_is_nowhere() -> None:
    [finding] = found(facts(*torch(), kernel(needed=("libc10.so", "libnvrtc.so.13"))))
    assert (finding.rule, finding.kind) == ("LIB002", "cuda_soname_missing")
    assert finding.remedies[0].commands == ("uv pip install --python /e nvidia-cuda-nvrtc",)
    older = facts(*torch(), kernel(needed=("libc10.so", "libnvrtc.so.12")), torch_cuda="12.8")
    assert found(older)[0].remedies[0].commands == ("uv pip install --python /e nvidia-cuda-nvrtc-cu12",)


def test_a_library_of_the_host() -> None:
    of = facts(*torch(), kernel(needed=("libc10.so", "libnuma.so.1")))
    [finding] = found(of)
    assert (finding.rule, finding.kind) == ("LIB003", "system_soname_missing")
    assert finding.remedies[0].commands == ("apt-get install libnuma1",)
    unknown = replace(of, system_libraries=Unknown("wheels"), host=Unknown("wheels"))
    assert found(unknown) == []  # neither fine nor broken


def test_a_library_that_lies_where_nobody_looks() -> None:
    own = Library("other/lib/libown.so.1", ROOT, "kern", soname="libown.so.1", exports="f")
    [finding] = found(facts(*torch(), own, kernel("f", ("libown.so.1",))))
    assert (finding.rule, finding.kind) == ("LIB004", "soname_present_but_not_on_path")
    assert "/e/site-packages/other/lib" in finding.remedies[0].commands[0]
    assert found(facts(*torch(), own, kernel("f", ("libown.so.1",), runpath=("$ORIGIN/../other/lib",)))) == []


def test_a_cuda_extension_beside_a_cpu_torch() -> None:
    [finding] = found(facts(*torch(), kernel(needed=("libc10.so", "libc10_cuda.so")), torch_cuda="None"))
    assert (finding.rule, finding.kind) == ("LIB005", "cuda_extension_beside_cpu_torch")
    assert "without CUDA" in finding.because[1].text


def test_a_newer_libc_and_a_newer_libstdcxx() -> None:
    libc = kernel(needed=("libc10.so", "libc.so.6"), version_needs=(("libc.so.6", ("GLIBC_2.2.5", "GLIBC_2.38")),))
    [finding] = found(facts(*torch(), libc))
    assert (finding.rule, finding.kind) == ("LIB006", "glibc_too_old")
    assert "version `GLIBC_2.38' not found" in finding.predicted_error
    cxx = kernel(
        needed=("libc10.so", "libstdc++.so.6"), version_needs=(("libstdc++.so.6", ("GLIBCXX_3.4.32", "CXXABI_1.3.15")),)
    )
    [finding] = found(facts(*torch(), cxx))
    assert (finding.rule, finding.kind) == ("LIB007", "glibcxx_too_old")
    fits = kernel(needed=("libc10.so", "libc.so.6"), version_needs=(("libc.so.6", ("GLIBC_2.2.5",)),))
    assert found(facts(*torch(), fits)) == []


def test_a_folder_in_ld_library_path_that_shadows() -> None:
    name = "libcusparse.so.13"
    mine = cuda(name, exports="cusparseCreate\ncusparseNew")
    shadow = Library("/usr/local/cuda/lib64/" + name, soname=name, exports="cusparseCreate")
    of = facts(*torch(), mine, kernel("cusparseNew", ("libc10.so", name), runpath=("$ORIGIN/../nvidia/cu13/lib",)))
    assert found(of) == []
    shadowed = replace(
        of,
        system_libraries=Known((LIBC, CXX, shadow), "here"),
        variables=Known((Variable("LD_LIBRARY_PATH", "/usr/local/cuda/lib64"),), "here"),
    )
    [finding] = found(shadowed, "LIB008")
    assert finding.kind == "ld_library_path_shadows_wheel_libs"
    assert "LD_LIBRARY_PATH holds its folder" in finding.because[1].text


def test_an_nccl_older_than_torch_needs() -> None:
    nccl = Library("nvidia/cu13/lib/libnccl.so.2", ROOT, "nvidia-nccl-cu13", soname="libnccl.so.2", exports="ncclSend")
    of = facts(*torch(needed="libnccl.so.2", imports="ncclCommResume"), nccl)
    [finding] = found(of)
    assert finding.rule == "LIB009"
    assert finding.subject.startswith("torch/_C.")
    assert finding.remedies[0].commands == ("uv pip install --python /e 'nvidia-nccl-cu13==2.30.7'",)
    newer = replace(nccl, exports="ncclSend\nncclCommResume")
    assert found(facts(*torch(needed="libnccl.so.2", imports="ncclCommResume"), newer)) == []


def test_how_much_a_failure_matters() -> None:
    bad = (*torch(), kernel("_ZN3c104cuda3badEv"))
    assert found(facts(*bad, site=replace(SITE, guarded=True)))[0].severity == "warning"
    assert found(facts(*bad, site=replace(SITE, when="call", chain=())))[0].severity == "warning"
    optional = (*torch(), kernel(needed=("libc10.so", "libmpi.so.40")))
    assert found(facts(*optional, site=replace(SITE, guarded=True)))[0].severity == "info"
    assert found(facts(*optional, site=None)) == []  # a plugin that nobody asks for
    foreign = replace(kernel("_ZN3c104cuda3badEv"), machine="aarch64")
    assert found(facts(*torch(), foreign)) == []


def test_variants_of_which_the_package_picks_one() -> None:
    choice = replace(SITE, opens="", how="text", choice=True)
    libraries = [
        replace(kernel("_ZN3c104cuda3badEv" if n == 9 else "_ZN3c104cuda4goodEv"), path=f"kern/libkern_torch2{n}.so")
        for n in (9, 10)
    ]
    sites = tuple(replace(choice, opens=one.path) for one in libraries)
    of = replace(facts(*torch(), *libraries), load_sites=Known(sites, "here"))
    assert found(of) == []


def test_two_majors_in_one_process() -> None:
    old = Library("nvidia/cuda_runtime/lib/libcudart.so.12", ROOT, "nvidia-cuda-runtime-cu12", soname="libcudart.so.12")
    mixed = kernel("", ("libc10.so", "libcudart.so.12"), runpath=("$ORIGIN/../nvidia/cuda_runtime/lib",))
    [finding] = found(facts(*torch(needed="libcudart.so.13"), cuda("libcudart.so.13"), old, mixed))
    assert (finding.rule, finding.severity) == ("LIB010", "warning")
    assert "two libcudart share a process" in finding.therefore
    same = kernel("", ("libc10.so", "libcudart.so.13"), runpath=("$ORIGIN/../nvidia/cu13/lib",))
    assert found(facts(*torch(needed="libcudart.so.13"), cuda("libcudart.so.13"), old, same)) == []


def test_a_library_that_cannot_be_read() -> None:
    broken = UnreadableFile("kern/cut.so", "kern", "truncated: 64 bytes lie outside of the file")
    [finding] = found(facts(*torch(), unreadable=Known((broken,), "here")), "LIB011")
    assert (finding.severity, finding.subject) == ("warning", "kern/cut.so")
    assert finding.remedies[0].commands == ("uv pip install --python /e --reinstall kern",)
    assert found(facts(*torch(), unreadable=Known((), "here")), "LIB011") == []
