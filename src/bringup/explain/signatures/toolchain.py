# ruff: noqa: E501 - rows of a table, one a line where they fit
"""Compilers and what they need: nvcc, ptxas, nvrtc, gcc, ninja, headers; and builds of extensions.

Wordings: nvcc 11 to 13, ptxas, nvrtc, crt/host_config.h, CCCL, torch.utils.cpp_extension, flashinfer's and Triton's JIT, CMake,
pip's build isolation, DeepSpeed, apex, flash-attn.
"""

from __future__ import annotations

from bringup.explain.signatures.row import Row

_SM75 = r"flashinfer requires (?:gpu\W{0,2}s? (?:with )?)?sm ?_?75|requires gpu\W{0,2}s? with sm ?_?75|no supported cuda architectures found for major versions"
_NINJA = r"no such file or directory: '?ninja|ninja is required to load|ninja:? (?:command )?(?:is )?not found|(?:could not|unable to|cannot|can't|couldn't|failed to) (?:find|locate|run) ['\"`]?ninja|build program corresponding to \"?ninja|please install ninja|ninja (?:is )?(?:missing|not installed)"
_DETECTED = r"detected cuda version ?\(?[^\n]{0,30}mismatches the version that was used to compile|mismatches the version that was used to compile ?pytorch"
_PTXAS = r"is not defined for option '?gpu-name"

ROWS: tuple[Row, ...] = (
    # The architecture is newer than the compiler
    Row("ptxas_does_not_know_arch", 10, _PTXAS),
    Row(
        "ptxas_does_not_know_arch",
        8,
        r"internal triton ptx codegen error|ptxas (?:fatal|failed|exited)[^\n]{0,80}sm_1\d\d|is not a recognized processor for this target",
    ),
    Row(
        "ptxas_does_not_know_arch",
        5,
        r"ptxaserror|triton_ptxas_(?:blackwell_)?path|ptxas[^\n]{0,80}(?:too old|bundled|does(?: not|n't) (?:know|support|recognize)|unknown|version 12\.[0-8])",
    ),
    Row(
        "ptxas_does_not_know_arch",
        3,
        r"\bptxas\b[^\n]{0,60}sm_?1[0-9]{2}",
        unless=r"on \.target|cannot be compiled for",
    ),
    Row("flashinfer_sm75_message_means_old_toolkit", 7, _SM75),
    Row("flashinfer_sm75_message_means_old_toolkit", 4, _SM75, ("blackwell_desktop",)),
    Row("flashinfer_sm75_message_means_old_toolkit", 2, _SM75, ("nvcc_before_12_9",)),
    Row(
        "flashinfer_sm75_message_means_old_toolkit",
        8,
        r"sm ?_?12[01x][^\n]{0,40}requires cuda (?:>=|version|toolkit)?[^\n]{0,12}12\.[89]",
    ),
    Row("flashinfer_sm75_message_means_old_toolkit", -6, _SM75, ("gpu_before_turing",)),
    Row(
        "torch_cuda_arch_list_env_wrong",
        5,
        r"torch_cuda_arch_list|flashinfer_cuda_arch_list",
        also=_SM75 + r"|no kernel image|unknown cuda arch|not supported|unsupported",
    ),
    Row("torch_cuda_arch_list_env_wrong", 6, _SM75, also=r"torch_cuda_arch_list"),
    Row("torch_cuda_arch_list_env_wrong", 8, _SM75, ("gpu_turing_to_hopper",)),
    Row("torch_cuda_arch_list_env_wrong", 4, r"nvcr\.io|ngc\b", also=_SM75),
    Row("torch_cuda_arch_list_env_wrong", 4, r"torch_cuda_arch_list ?[=:] ?\S"),
    Row("gpu_too_old_for_wheel", 7, _SM75, ("gpu_before_turing",)),
    Row(
        "nvcc_too_old_for_arch",
        10,
        r"nvcc fatal[^\n]{0,6}: ?unsupported gpu architecture|unsupported gpu architecture '?(?:compute|sm)_",
    ),
    Row(
        "nvcc_too_old_for_arch",
        8,
        r"unknown cuda arch[^\n]{0,20}or gpu not supported|cmake_cuda_architectures[^\n]{0,60}(?:not|un)[ -]?support",
    ),
    Row(
        "nvcc_too_old_for_arch",
        5,
        r"nvcc[^\n]{0,60}(?:too old|does(?: not|n't) (?:know|support))|value 'compute_\w+' is not defined for option|unsupported cuda architecture",
    ),
    Row(
        "arch_string_parse_bug",
        8,
        r"(?:compute|sm)_(?:1200|1210|1000|9000|120?\.\d)|(?:compute|sm)_12\b(?![01])|arch[^\n]{0,30}parsed|'12\.'|sm_1\b",
    ),
    Row("nvrtc_does_not_know_arch", 10, r"invalid value for --gpu-architecture"),
    Row(
        "nvrtc_does_not_know_arch",
        5,
        r"nvrtc[^\n]{0,60}(?:unsupported|invalid|unknown)[^\n]{0,30}arch|nvrtc_error_invalid_option",
    ),
    Row(
        "arch_specific_target_suffix_missing",
        8,
        r"(?:not supported|cannot be compiled|can not be compiled|requires)[^\n]{0,30}(?:on|for)?[^\n]{0,12}(?:\.target|architecture|arch)[^\n]{0,6}'?sm_(?:90|100|101|103|110|120|121)\b(?!a|f)",
    ),
    Row(
        "arch_specific_target_suffix_missing",
        6,
        r"(?:compute|sm)_(?:90|100|103|110|120|121)[af]\b[^\n]{0,60}(?:instead|required|needed|must|not plain)|(?:need|use|requires?|with|must be|missing)[^\n]{0,30}(?:sm|compute)_(?:90|100|103|110|120|121)[af]\b",
    ),
    Row(
        "arch_specific_target_suffix_missing",
        4,
        r"arch conditional|arch-conditional|architecture-(?:specific|accelerated)|mma with block.?scale|instruction (?:not|is not) supported|without the (?:'?a'?|suffix)",
    ),
    Row(
        "arch_specific_feature_not_on_target",
        9,
        r"(?:wgmma|tcgen05)[^\n]{0,80}(?:not supported|cannot be compiled|unsupported)[^\n]{0,40}sm_12[01]",
    ),
    Row(
        "arch_specific_feature_not_on_target",
        7,
        r"(?:wgmma|gmma|sm90_\w+|sm90)[^\n]{0,100}(?:sm_?12[01]|compute_12[01])|cute::sm90\w*[^\n]{0,60}(?:error|not)",
    ),
    Row("arch_specific_feature_not_on_target", 3, r"\bwgmma\b", ("blackwell_desktop",)),
    Row(
        "build_arch_filter_drops_target",
        9,
        r"loose_intersection|no compatible archs found|not building \w+ (?:kernels )?(?:as|because|since)|architecture[^\n]{0,20}(?:filtered|dropped|removed|ignored)",
    ),
    Row(
        "build_arch_filter_drops_target",
        7,
        r"(?:drop(?:s|ped)?|strip(?:s|ped)?|filter(?:s|ed)?(?: out)?|skip(?:s|ped)?|ignor(?:es|ed)|omit(?:s|ted)?|silently|excludes?)[^\n]{0,40}(?:12\.[01][af]?|sm_?12[01]|compute_12[01]|arch)",
    ),
    Row(
        "build_arch_filter_drops_target",
        5,
        r"(?:only|just) (?:builds?|built|compil\w+|contains?|sm_?1\d\d)[^\n]{0,40}sm_?12?0|cuda_supported_archs|(?:build|compil)\w*[^\n]{0,30}(?:succe|complet|finish|pass)\w*[^\n]{0,60}(?:but|yet|missing|no )",
    ),
    # nvcc is not there, or its variables are wrong
    Row(
        "nvcc_absent_or_cuda_home_unset",
        9,
        r"cuda_home environment variable is not set|cuda_home (?:does not exist|is not set|not set|unset|is none|not found)|could not find nvcc|cannot find cuda_home|unable to (?:find|locate)[^\n]{0,20}(?:nvcc|cuda_home|cuda compiler)",
    ),
    Row(
        "nvcc_absent_or_cuda_home_unset",
        8,
        r"nvcc:? (?:command |was |is )?not (?:found|installed|available)|no such file or directory: '?\S{0,80}nvcc|no (?:cuda toolkit|nvcc)[^\n]{0,20}(?:found|installed|in)|missingcudaexception|failed to find nvcc|nvcc[^\n]{0,20}missing",
    ),
    Row(
        "nvcc_absent_or_cuda_home_unset",
        7,
        r"no cmake_cuda_compiler could be found|failed to find[^\n]{0,20}cuda toolkit|specify cuda_toolkit_root_dir|could not find cuda|/usr/local/cuda'? does(?: not|n't) exist",
    ),
    Row(
        "nvcc_absent_or_cuda_home_unset",
        3,
        r"deep_?gemm[^\n]{0,80}assertionerror|_find_cuda_home|install a cuda toolkit|cuda_home",
    ),
    Row(
        "cuda_home_malformed",
        10,
        r"(?:^|[\s'\"=`]):/\S{0,80}/?bin/nvcc|/\S{0,60}cuda[^\s:]{0,20}:/?\S{0,60}(?:/bin/nvcc|/include)|cuda_home[^\n]{0,12}[=:] ?['\"]?:/|cuda_home[^\n]{0,20}\S+:/\S+cuda",
    ),
    Row("cuda_home_malformed", 6, r"cuda_home[^\n]{0,60}(?:malformed|colon|trailing|several|multiple|not a director)"),
    Row(
        "nvcc_vs_cuda_headers_mismatch",
        10,
        r"cuda compiler and cuda toolkit headers are incompatible|macro \"__cudalaunch\"",
    ),
    Row(
        "nvcc_vs_cuda_headers_mismatch",
        8,
        r"unsupported \.version \d|cicc: not found|nvcc[^\n]{0,60}headers[^\n]{0,60}(?:mismatch|differ|incompatib|version|newer|older)|cccl_disable_ctk_compat",
    ),
    Row(
        "nvcc_vs_cuda_headers_mismatch",
        6,
        r"qualified name is not allowed|namespace \"?cuda(?:::\w+)*\"? has no member|cuda::\w+[^\n]{0,30}(?:error|undefined|not)|cccl|__cccl",
    ),
    Row(
        "nvcc_vs_cuda_headers_mismatch",
        3,
        r"cuda[^\n]{0,12}1[123]\.\d[^\n]{0,10}(?:and|vs|with|,)[^\n]{0,20}1[123]\.\d",
    ),
    Row("nvcc_vs_cuda_headers_mismatch", 5, r"nv/target: no such file|crt/host_config\.h: no such|cuda_toolkit\.h"),
    Row("nvcc_vs_torch_cuda_mismatch", 9, _DETECTED),
    Row(
        "nvcc_vs_torch_cuda_mismatch",
        9,
        r"installed cuda version \S{1,12} does not match the version torch was compiled|does not match the version used to compile pytorch|pytorch binaries were compiled with cuda",
    ),
    Row(
        "nvcc_vs_torch_cuda_mismatch",
        7,
        r"cuda extensions are being compiled with a version of cuda|cuda (?:toolkit )?(?:version )?mismatch|cudamismatchexception",
    ),
    Row(
        "build_isolation_pulls_other_torch",
        8,
        r"pip-build-env|build.isolation|/overlay/|isolated (?:build|env)|builds-v\d",
        also=r"mismatch|torch",
    ),
    Row(
        "build_isolation_pulls_other_torch",
        5,
        r"getting requirements to build wheel|installing build dependencies|pyproject\.toml|no module named 'torch'",
        also=_DETECTED + r"|no module named 'torch'",
    ),
    Row(
        "nvcc_too_old_for_package",
        9,
        r"nvcc version must be|only supported on cuda \d+\.\d+ and (?:above|newer)|value 'c\+\+\d\d' is not defined for option|requires (?:a )?(?:nvcc|cuda toolkit|cuda|cuda version)[^\n]{0,12}(?:>=|at least|or newer|higher)? ?1[1-3]\.\d",
    ),
    Row(
        "nvcc_too_old_for_package",
        6,
        r"cuda_fp[48]\.h['\"]?: no such file|cuda_fp[48]\.h\"? ?(?:not found|no such)|__nv_fp[48]\w* (?:is undefined|has not been|was not)|identifier \"__nv_\w+\" is undefined|no member \"?\w+\"?[^\n]{0,40}__nv|namespace \"?cub\"? has no",
    ),
    Row(
        "nvcc_too_old_for_package",
        4,
        r"(?:cuda|nvcc|toolkit)[^\n]{0,16}1[12]\.[0-9][^\n]{0,40}(?:too old|not supported|unsupported|older)|minimum (?:required )?cuda",
    ),
    # Host compilers
    Row(
        "host_gcc_too_new_for_nvcc",
        10,
        r"unsupported gnu version|gcc versions later than \d+|unsupported (?:clang|microsoft visual studio) version|greater than the maximum required version",
    ),
    Row(
        "host_gcc_too_new_for_nvcc",
        7,
        r"allow-unsupported-compiler|host_config\.h|parameter packs not expanded|identifier \"__builtin_ia32\w+\" is undefined|_float(?:16|32|32x|64|128)\"? is undefined|gcc[- ]?1[0-9][^\n]{0,40}(?:too new|not supported|unsupported)|exception specification is incompatible",
    ),
    Row("host_gcc_too_new_for_nvcc", 4, r"nvcc[^\n]{0,60}gcc[- ]?1[2-9]|g\+\+[- ]?1[3-9]"),
    Row(
        "c_compiler_missing",
        10,
        r"failed to find c compiler|please specify via cc environment variable|unable to find a? ?c compiler|no c compiler found|no acceptable c compiler",
    ),
    Row(
        "c_compiler_missing",
        9,
        r"no such file or directory: '(?:\S{0,40}/)?(?:gcc|cc|c\+\+|g\+\+|clang\+*|\S{1,20}-linux-gnu-g(?:cc|\+\+)|cl)'|(?<![a-z])(?:gcc|g\+\+|cc|c\+\+|clang|cc1plus)'?:? (?:command |is )?not found|no cmake_c(?:xx)?_compiler could be found|cc1plus: no such|cannot execute '?cc1plus",
    ),
    Row(
        "c_compiler_missing",
        8,
        r"invalidcxxcompiler|command '\S{0,40}g(?:cc|\+\+)' failed: no such file|(?:gcc|compiler|build-essential)[^\n]{0,20}(?:is )?not installed",
    ),
    Row(
        "python_headers_missing",
        10,
        r"python\.h['\"`>]?:? ?(?:no such file|not found|file not found)|python\.h is missing|missing python\.h",
    ),
    Row(
        "python_headers_missing",
        5,
        r"python\.h\b|python3?[.\d]{0,9}-dev(?:el)?\b|could not find python[^\n]{0,30}(?:development|include|headers)",
    ),
    Row("ninja_missing", 9, _NINJA),
    Row(
        "ninja_installed_but_not_on_path",
        6,
        _NINJA,
        also=r"already satisfied: ninja|ninja[^\n]{0,30}(?:is|are)? ?(?:already )?installed|ninja (?:==)?1\.\d+|ninja-1\.|installed ninja|pip (?:show|list|install)[^\n]{0,40}ninja|\bpath\b|bin/ninja|(?:not |without )activat",
    ),
    Row(
        "ninja_installed_but_not_on_path",
        5,
        r"bin/ninja|ninja[^\n]{0,60}(?:not (?:on|in) (?:\w+ )?path|path)|(?:not |without )(?:being )?activat|(?:venv|bin) (?:is )?not (?:on|in)[^\n]{0,6}path",
        also=_NINJA,
    ),
    Row(
        "cuda_headers_absent_for_nvrtc",
        8,
        r"(?:cuda_fp16|cuda_runtime|vector_types|cuda_bf16|cuda_device_runtime_api|cuda/std/\w+|cuda_fp8|curand_kernel|cooperative_groups|cuda)\.h\w*\"?'?\)?:? ?(?:no such file|file not found|not found)",
        unless=r"ptxas fatal",
    ),
    Row(
        "cuda_headers_absent_for_nvrtc",
        8,
        r"could not open source file \"(?:cuda|vector|curand|cooperative|cub|thrust|nv/)|cannot open source file \"(?:cuda|vector|curand|cooperative|cub|thrust|nv/)|failed to (?:auto-?detect|find)[^\n]{0,20}cuda (?:root|include|headers)",
    ),
    Row(
        "cuda_headers_absent_for_nvrtc",
        4,
        r"catastrophic error: ?(?:cannot|could not) open source|nvrtc[^\n]{0,40}header|nvidia-cuda-runtime",
    ),
    # Caches of compiled code
    Row("jit_cache_lock_left", 9, r"file_?baton|baton\.wait"),
    Row(
        "jit_cache_lock_left",
        7,
        r"(?:\.lock|lock file|lockfile|stale lock|filelock|lock)\b[^\n]{0,80}(?:hang|stuck|wait|left|forever|acquir|remain|exists)|(?:hang|stuck|wait)\w*[^\n]{0,80}(?:\.lock|lock file|lockfile|filelock|\block\b)",
    ),
    Row(
        "jit_cache_lock_left",
        8,
        r"(?:jit|ops|extension|compil\w+|kernel build)[^\n]{0,60}(?:\bstuck\b|\bhangs?\b|hung|forever|never (?:finish|return|complet)\w*)",
    ),
    Row("jit_cache_lock_left", 4, r"(?:\.cache|cached_ops|torch_extensions)\S{0,120}lock"),
    Row(
        "jit_cache_needlessly_invalidated",
        7,
        r"(?:re-?compil\w*|re-?build\w*|invalidat\w*)[^\n]{0,60}(?:every|each|again|from scratch|although|even though|unchanged|same|silently|needless|spurious)|(?:every|each|again|always|silently)[^\n]{0,40}(?:re-?compil|re-?build|invalidat)",
    ),
    Row(
        "jit_cache_needlessly_invalidated",
        4,
        r"invalidat\w+|build\.ninja|\bmtime\b|restat",
        also=r"cache|rebuil|recompil",
    ),
    Row("jit_cache_on_network_fs", 9, r"stale file handle|errno 116|\.nfs[0-9a-f]{6,}|estale"),
    Row(
        "jit_cache_on_network_fs",
        7,
        r"\bnfs[34]?\b|\blustre\b|\bgpfs\b|\bbeegfs\b|\bweka\b|\bceph(?:fs)?\b|network (?:file ?system|share|drive|storage)|shared file ?system",
    ),
    Row(
        "arch_string_parse_bug",
        10,
        r"auto[- _]?(?:build|built|detect\w*|arch)|detected arch|arch(?:itecture)? (?:auto|detect)",
        also=r"no kernel image|nokernelimage|unsupported gpu architecture",
    ),
    Row(
        "build_arch_filter_drops_target",
        8,
        r"(?:emits?|has|have|with|gets?|adds?|contains?) no (?:-?gencode|\w{0,12} ?sass|sm_?1\d\d)|no -?gencode",
    ),
    Row("nvcc_vs_torch_cuda_mismatch", 7, r"ptx jit compil\w+ failed", also=r"\bapex\b|extension|setup\.py|build"),
    Row(
        "nvcc_too_old_for_package",
        6,
        r"(?:compile|compilation|build)\w* (?:errors?|fail\w*)[^\n]{0,30}(?:nvcc|cuda)[^\n]{0,4}1[12]|(?:nvcc|cuda)[^\n]{0,4}1[12]\.\d[^\n]{0,30}(?:compile|compilation|build)\w* (?:errors?|fail\w*)",
    ),
    Row(
        "cuda_headers_absent_for_nvrtc",
        6,
        r"nvrtc_error_compilation|nvrtcerror|compileexception",
        also=r"header|toolkit|include|\.h\b",
    ),
    Row(
        "build_isolation_pulls_other_torch",
        11,
        r"pip-build-env|build.isolation|/overlay/|isolated (?:build|env)|builds-v\d",
        also=_DETECTED,
    ),
    Row(
        "ninja_installed_but_not_on_path",
        11,
        r"already satisfied: ninja|pip (?:show|list)[^\n]{0,20}ninja|ninja[^\n]{0,40}(?:is|are|was)? ?(?:already )?installed\b|bin/ninja|(?:not |without )(?:being )?activat|ninja[^\n]{0,60}not (?:on|in) (?:\w+ )?path|(?:venv|bin)\S* (?:is )?not (?:on|in)[^\n]{0,6}path",
        also=_NINJA,
        unless=r"ninja (?:is )?not installed",
    ),
    Row(
        "nvcc_too_old_for_package",
        8,
        r"nvcc fatal[^\n]{0,6}: ?unknown option|unrecognized (?:command.line )?option[^\n]{0,30}nvcc",
    ),
    Row("arch_string_parse_bug", 11, r"(?:compute|sm)_(?:1200|1210|1030|1000|9000|8900|8600)\b"),
)
