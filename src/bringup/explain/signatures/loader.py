# ruff: noqa: E501 - rows of a table, one a line where they fit
"""What the dynamic loader says: sonames, symbols, versions.

Wordings: glibc's ld.so, Python's import of extension modules, ctypes, torch._ops, ldd. Mangled names: Itanium C++ ABI,
lower case here; c10, at and torch are torch's own namespaces.
"""

from __future__ import annotations

from bringup.explain.signatures.row import Row

_OPEN = r"['\"]?(?:: cannot open shared object| => not found|: no such file| not found| is missing)"
_CUDA_LIBRARY = r"lib(?:cudart|cublas|cublaslt|nvrtc|nvjitlink|cufft|cusparse|cusolver|npp\w{1,8}|cupti|nvtoolsext|cufile|curand)\.so\.\d+(?:\.\d+)*"
_UNDEFINED = r"undefined symbol:? ?[`'\"]?"
_TORCH_SYMBOL = (
    _UNDEFINED
    + r"(?:_z(?:t[ivs])?n?k?(?:3c10|2at\d|2at[a-z_]|5torch|5caffe2)|aoti_|torch_\w|(?:typeinfo for |vtable for )?(?:c10|at|torch)::)"
)
_OWN = r"(?:cached|--no-cache-dir|pip cache|wheel cache|no-cache)"

ROWS: tuple[Row, ...] = (
    # Sonames
    Row("soname_missing_cuda_major_mismatch", 7, _CUDA_LIBRARY + _OPEN),
    Row("soname_missing_cuda_major_mismatch", 4, _CUDA_LIBRARY, ("soname_of_other_cuda_major",)),
    Row("soname_missing_cuda_major_mismatch", -3, _CUDA_LIBRARY + _OPEN, ("soname_of_same_cuda_major",)),
    Row(
        "soname_missing_cuda_major_mismatch",
        2,
        r"\bcu(?:da)?[- ]?1[123]\d?\b[^\n]{0,60}\bcu(?:da)?[- ]?1[123]\d?\b",
        also=_CUDA_LIBRARY,
    ),
    Row("soname_missing_cuda_major_mismatch", 5, r"could not load libtorchcodec", ("soname_of_other_cuda_major",)),
    Row(
        "soname_present_but_not_on_path",
        4,
        r"lib\w+\.so(?:\.\d+)*" + _OPEN,
        also=r"ld_library_path|import torch|find / |ldconfig",
    ),
    Row(
        "soname_present_but_not_on_path",
        9,
        _CUDA_LIBRARY + _OPEN,
        ("soname_of_same_cuda_major",),
        unless=r"colab|cuda ?1[01]\b",
    ),
    Row(
        "soname_present_but_not_on_path",
        6,
        r"without (?:the )?(?:cuda )?toolkit|runtime image|no (?:cuda )?toolkit|(?:pip|wheel)[^\n]{0,30}nvidia",
        also=_CUDA_LIBRARY + _OPEN,
    ),
    Row(
        "soname_present_but_not_on_path",
        9,
        r"unable to load any of \{?libcudnn|could not load library libcudnn\w*|unable to load (?:dynamic|shared) library '?libcu|library lib(?:cudnn|cublas)\w*\.so\S* is not found or cannot be loaded",
    ),
    Row("soname_present_but_not_on_path", 5, r"libcudnn\w*\.so\.\d+" + _OPEN),
    Row(
        "soname_present_but_not_on_path",
        3,
        r"(?:file|library|lib\S+) (?:exists|is there|is present|is installed)|site-packages/nvidia/\w+/lib|although[^\n]{0,40}installed",
    ),
    Row("soname_present_but_not_on_path", 3, r"invalid handle\. cannot load symbol cudnn", also=r"libcudnn"),
    Row(
        "system_soname_missing",
        9,
        r"lib(?:numa|mpi|mpi_cxx|mpi_\w+|python3\.\d+|ibverbs|rdmacm|gomp|gl|sm|xext|glib-2\.0|sndfile|jpeg|png16|tinfo|ssl|crypto|ffi|z|openblas|tbb|hwloc|ucp|ucs|ucc|nl-3|efa|fabric|omp|iomp5|gfortran|avcodec|avutil|avformat|tcmalloc|jemalloc|sqlite3|gdrapi|cufile|aio|pmix|torch_python|stdc\+\+)\.so(?:\.\d+)*"
        + _OPEN,
    ),
    Row("system_soname_missing", 3, r"apt(?:-get)? install[^\n]{0,40}lib|libopenmpi|libnuma"),
    Row(
        "library_under_unreadable_root_home",
        9,
        r"/root/\S{0,200}[^\n]{0,40}permission denied|permission denied[^\n]{0,40}/root/",
    ),
    Row(
        "library_under_unreadable_root_home",
        6,
        r"/root/\.(?:local|pyenv|cache/uv)|libpython3\.\d+\S*[^\n]{0,60}permission denied",
        also=r"permission|cannot open|non-?root|user",
    ),
    Row(
        "library_under_unreadable_root_home",
        4,
        r"libpython3\.\d+\.so\S*" + _OPEN,
        also=r"non-?root|runasuser|uid|--user|unprivileged|openshift|/root",
    ),
    Row("nvshmem_soname_or_version", 8, r"libnvshmem\w*\.so\S*" + _OPEN),
    Row(
        "nvshmem_soname_or_version",
        8,
        r"nvshmem[^\n]{0,80}(?:version|mismatch|incompatib|undefined|do(?:es)? not match|error|fail|not found)|undefined[^\n]{0,40}nvshmem",
    ),
    Row("nvshmem_soname_or_version", 4, r"nvshmem"),
    Row("nvrtc_builtins_missing", 10, r"nvrtc-builtins|nvrtc_error_builtin_operation_failure"),
    Row(
        "loader_code_hardcodes_cuda_major",
        6,
        r"(?:_preload_cuda|preload\w{0,20}|ctypes|cdll|dlopen|hard-?coded?)[^\n]{0,80}libcudart\.so\.1\d|libcudart\.so\.1\d[^\n]{0,60}(?:hard-?cod|preload|ctypes|cdll)",
    ),
    Row(
        "loader_code_hardcodes_cuda_major",
        5,
        r"could not load any common_ops library",
        ("soname_of_other_cuda_major", "torch_cuda_13"),
        also=r"libcudart\.so\.12",
    ),
    Row("loader_code_hardcodes_cuda_major", 4, r"ctypes/__init__|_dlopen\(|cdll\(", also=_CUDA_LIBRARY),
    Row(
        "site_packages_lib_lib64_split",
        6,
        r"/lib64/python3?[.\d]{0,9}/(?:site|dist)-packages/torch|lib64/python",
        also=r"cannot open shared object|not found",
    ),
    Row(
        "site_packages_lib_lib64_split",
        6,
        r"\blib64\b[^\n]{0,80}(?:/lib/|\blib\b)|(?:/lib/|\blib\b)[^\n]{0,80}\blib64\b",
        also=r"torch|nvidia",
    ),
    Row(
        "site_packages_lib_lib64_split",
        3,
        r"lib(?:cudnn|cublas|cudart|nccl|cusparselt|nvshmem_host)\w*\.so\.\d+" + _OPEN,
        also=r"lib64",
    ),
    Row(
        "site_packages_lib_lib64_split",
        5,
        r"(?:different|another|separate|other|two|split)[^\n]{0,30}site-packages|platlib|purelib",
    ),
    # Symbols
    Row("extension_built_for_other_torch", 6, _TORCH_SYMBOL),
    Row("extension_built_for_other_torch", 5, r"could not load any common_ops library", also=_UNDEFINED),
    Row(
        "extension_built_for_other_torch",
        4,
        r"(?:built|compiled|build)[^\n]{0,40}(?:for|against|with) (?:a )?(?:(?:different|other|another|old|newer|older) )?(?:py)?torch",
    ),
    Row("extension_built_for_other_torch", 3, r"could not load this library", also=_UNDEFINED),
    Row("extension_built_for_other_torch", 5, r"could not load libtorchcodec", also=_UNDEFINED),
    Row("extension_built_for_other_torch", 4, r"could not load libtorchcodec|libtorchcodec"),
    Row(
        "extension_built_for_other_torch",
        5,
        r"undefined symbols?(?!:? ?[`'\"]?(?:_z|p?nccl|_*nvjit|cu[a-z]|py|tvm|nvshmem|\w{6}))",
    ),
    Row(
        "extension_built_for_other_torch",
        5,
        r"(?:cu1\d\d|torch ?(?:==)?2\.\d+\S{0,12})[^\n]{0,24}(?:->|→|=>| but | vs\.? |instead of)[^\n]{0,24}(?:cu1\d\d|2\.\d+)|torch: anything but|wants? torch|needs? torch ?=?=?2",
        also=r"undefined symbol",
    ),
    Row(
        "torch_cxx11_abi_mismatch",
        4,
        r"undefined symbols?(?!:? ?[`'\"]?(?:_z|p?nccl|_*nvjit|cu[a-z]|py|tvm|nvshmem|\w{6}))",
        also=r"flash.?attn|mamba|causal.conv|abi",
    ),
    Row(
        "pip_cached_build_of_other_torch",
        3,
        r"undefined symbols?(?!:? ?[`'\"]?(?:_z|p?nccl|_*nvjit|cu[a-z]|py|tvm|nvshmem|\w{6}))",
        also=r"causal.conv|mamba|flash.?attn|apex|detectron|pip",
    ),
    Row("extension_built_for_other_torch", 3, r"undefined symbol", ("torch_2_7_up",), also=r"3c10|2at\d|5torch"),
    Row(
        "extension_built_for_other_torch",
        3,
        r"has no attribute '(?:_?c|rms_norm|gptq\w*|awq\w*|reshape_and_cache\w*|silu_and_mul|get_cuda_view\w*)'|_opnamespace' '?_c",
    ),
    Row("torch_cxx11_abi_mismatch", 6, _UNDEFINED + r"_z\w{0,200}__cxx11"),
    Row("torch_cxx11_abi_mismatch", -4, _UNDEFINED + r"_z\w{0,200}__cxx11", ("torch_2_7_up",)),
    Row("torch_cxx11_abi_mismatch", 3, _UNDEFINED + r"_zn3c105errorc[12]ens_14sourcelocatione"),
    Row(
        "torch_cxx11_abi_mismatch",
        8,
        r"glibcxx_use_cxx11_abi|cxx11.?abi|abi ?=?(?:true|false)\b|_compiled_with_cxx11_abi",
    ),
    Row("pip_cached_build_of_other_torch", 9, _OWN, also=_TORCH_SYMBOL + r"|undefined symbol"),
    Row(
        "stale_jit_cache",
        9,
        r"(?:torch_extensions|\.cache|cached_ops|/tmp/\S{0,60}ext)\S{0,200}\.so\S{0,4}[^\n]{0,20}undefined symbol",
    ),
    Row(
        "stale_jit_cache",
        6,
        r"(?:rm -rf?|delet\w+|clear\w*|remov\w+|wip\w+|purg\w+)[^\n]{0,30}(?:\.cache|cache|torch_extensions)",
    ),
    Row(
        "stale_jit_cache", 5, r"\bstale\b|torch_extensions|cached (?:\.so|kernel|module|librar|extension|op)|cached_ops"
    ),
    Row(
        "stale_jit_cache",
        3,
        r"(?:after|since|following) (?:the |an? )?(?:upgrad|updat|reinstall|downgrad|chang|switch)\w*",
        also=r"cache",
    ),
    Row("nccl_shadowed_by_older", 9, _UNDEFINED + r"_?p?nccl\w+"),
    Row("nccl_shadowed_by_older", -3, r"nccl", ("packages_of_two_cuda_majors",)),
    Row(
        "nccl_shadowed_by_older",
        5,
        r"libnccl\.so[^\n]{0,60}(?:old|version|ld_library_path|system|/usr/lib)",
        also=r"undefined|nccl\w+ not",
    ),
    Row("ld_library_path_shadows_wheel_libs", 9, _UNDEFINED + r"_*nvjitlink\w+|symbol _*nvjitlink\w+"),
    Row(
        "ld_library_path_shadows_wheel_libs",
        8,
        _UNDEFINED
        + r"(?:cublas|cudnn|cusparse|cusolver|cufft|curand|cudart|cudagraph|cudaget|cudaevent|cudastream|nvrtc|cupti|cufile|nvtx|nvml)\w*",
    ),
    Row(
        "ld_library_path_shadows_wheel_libs",
        8,
        r"symbol \w+[^\n]{0,60}not defined in file lib|version [`'\"]?lib\w+\.so[.\d]{0,9}['\"]? not (?:found|defined)",
    ),
    Row("ld_library_path_shadows_wheel_libs", 6, _UNDEFINED + r"(?:ijit_notifyevent|omp_\w+|kmp\w+|_ZN?3fmt)"),
    Row(
        "ld_library_path_shadows_wheel_libs",
        8,
        r"cudnn version incompatibility|compiled\s{1,4}against[^\n]{0,30}but found runtime version|sublibrary_version_mismatch|cudnn_status_version_mismatch",
    ),
    Row("ld_library_path_shadows_wheel_libs", 4, r"ld_library_path"),
    Row(
        "ld_library_path_shadows_wheel_libs",
        3,
        r"could not load library libcudnn|symbol lookup error",
        also=r"ld_library_path|/usr/local/cuda|conda|/usr/lib",
    ),
    Row(
        "extension_missing_own_symbol",
        7,
        _UNDEFINED + r"_z(?!(?:t[ivs])?n?k?(?:3c10|2at\d|2at[a-z_]|5torch|5caffe2|3tvm|s[a-z]|st))\w+",
    ),
    Row(
        "extension_missing_own_symbol",
        7,
        _UNDEFINED + r"(?:\.{2,3}|…)\w{0,80}(?:cutlass|gemm|moe|kernel|quant|attn|runner)",
    ),
    Row(
        "extension_missing_own_symbol",
        6,
        _UNDEFINED + r"(?!_z|_*nvjitlink|p?nccl|cu[a-z]|nvshmem|nvml|nvrtc|py|_py|tvm|aoti|ijit|omp|kmp|_*cxa)\w+",
    ),
    Row("extension_missing_own_symbol", 5, _UNDEFINED + r"_z\w{0,40}(?:cutlass|moe|scaled_mm|gemm|kernels?)\w*"),
    Row(
        "extension_missing_own_symbol",
        5,
        _UNDEFINED + r"_zn\d+(?:tensorrt_llm|deep_ep|vllm|sglang|flash|marlin|cutlass|deep_gemm)",
    ),
    Row("tvm_ffi_abi", 9, _UNDEFINED + r"(?:tvmffi\w+|_zn?k?3tvm\w+)"),
    Row("python_abi_tag", 6, _UNDEFINED + r"_?py\w+"),
    # Versions
    Row(
        "glibc_too_old",
        10,
        r"glibc_2\.\d+['\"]? not found|glibc_2\.\d+[^\n]{0,40}(?:required|needed|missing|not (?:available|defined))",
    ),
    Row(
        "glibc_too_old",
        5,
        r"glibc (?:version )?(?:is )?(?:too old|2\.\d+[^\n]{0,30}(?:required|older|only))|requires? glibc",
    ),
    Row(
        "glibcxx_too_old",
        10,
        r"(?:glibcxx|cxxabi)_[\d.]+['\"]? not found|(?:glibcxx|cxxabi)_[\d.]+[^\n]{0,40}(?:required|missing)",
    ),
    # Mapping
    Row(
        "noexec_or_map_failure",
        10,
        r"failed to map segment from shared object|cannot map (?:zero-fill|segment)|cannot (?:enable|change memory protections)",
    ),
    Row(
        "noexec_or_map_failure",
        7,
        r"\bnoexec\b|cannot allocate memory in static tls block|cannot apply additional memory protection",
    ),
    Row("torch_cxx11_abi_mismatch", 8, _UNDEFINED + r"_zn?\w{0,200}(?:[a-z0-9_](?:rk|e|r|_)ss(?:[a-z0-9_]{0,12})?\b)"),
    Row(
        "torch_cxx11_abi_mismatch",
        -3,
        r"(?:vllm/|sgl_kernel|common_ops)",
        also=_UNDEFINED + r"_zn?\w{0,200}ss[a-z]{0,3}\b",
    ),
    Row(
        "site_packages_lib_lib64_split",
        8,
        r"\b(?:alma|rocky|fedora|rhel|red hat|centos|amazon ?linux|oracle linux|opensuse|poetry)",
        also=r"lib(?:cudnn|cublas|cublaslt|cudart|nccl|cusparselt|cufft|cusparse|nvjitlink|nvshmem_host|cupti)\w*\.so\S* ?(?:cannot open|not found|=>)",
    ),
    Row(
        "library_under_unreadable_root_home",
        11,
        r"libpython3\.\d+\.so\S*" + _OPEN,
        also=r"non-?root|runasuser|\buid\b|--user|unprivileged|openshift|/root",
    ),
    Row(
        "stale_jit_cache",
        7,
        r"(?:old|outdated|previous|stale)[^\n]{0,16}(?:kernel|code|librar\w+|binar\w+|module|\.so|build)[^\n]{0,40}(?:serv|use|load|still|run|pick|reus|after)",
    ),
    Row(
        "loader_code_hardcodes_cuda_major",
        9.5,
        r"(?:_preload_cuda|preload\w{0,20}|ctypes|cdll|dlopen|hard-?coded?)[^\n]{0,80}libcudart\.so\.1\d|libcudart\.so\.1\d[^\n]{0,90}(?:hard-?cod|preload|ctypes|cdll)",
        ("soname_of_other_cuda_major",),
    ),
)
