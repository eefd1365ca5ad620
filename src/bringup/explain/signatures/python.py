# ruff: noqa: E501 - rows of a table, one a line where they fit
"""Packages that do not fit each other, the interpreter, the index, the hub.

Wordings: Python's ImportError and AttributeError, pip and uv, flashinfer's version check, xformers, bitsandbytes, numpy,
torchvision, transformers, huggingface_hub.
"""

from __future__ import annotations

from bringup.explain.signatures.row import Row

_OFFLINE = r"offline mode is enabled|offlinemodeisenabled|hf_hub_offline|transformers_offline|local_files_only|outgoing traffic has been disabled|localentrynotfound"

ROWS: tuple[Row, ...] = (
    Row(
        "flashinfer_companion_version",
        10,
        r"flashinfer[-_](?:cubin|jit[-_]cache)[^\n]{0,60}(?:does not match|mismatch|differ|!=|incompatib)",
    ),
    Row(
        "flashinfer_companion_version",
        8,
        r"flashinfer_disable_version_check|flashinfer[-_ ](?:cubin|jit[-_]cache) version",
    ),
    Row("flashinfer_companion_version", 6, r"flashinfer", ("flashinfer_companions_differ",)),
    Row("flashinfer_companion_version", 2, r"flashinfer[-_](?:cubin|jit[-_]cache)"),
    Row("triton_version_vs_torch", 9, r"cannot import name '?\w+'? from '?(?:partially initialized module '?)?triton"),
    Row(
        "triton_version_vs_torch", 8, r"module '?triton(?:\.\w+){0,6}'? has no attribute|no module named '?triton\.\w+"
    ),
    Row(
        "triton_version_vs_torch",
        7,
        r"cannot import[^\n]{0,30}triton_key|attrsdescriptor|no module named '?triton'?\s*$",
    ),
    Row(
        "triton_version_vs_torch",
        7,
        r"(?:torch|pytorch) \S{0,30} ?(?:requires|depends on|needs|wants) (?:pytorch-)?triton",
    ),
    Row(
        "triton_version_vs_torch",
        6,
        r"(?:requires|but you have|conflict|incompatib|depends on)[^\n]{0,40}triton ?[=<>! ]|triton[=<> ]{1,3}\d[^\n]{0,60}(?:incompatib|conflict|mismatch|not compatible|which is incompatible)",
    ),
    Row(
        "triton_version_vs_torch",
        4,
        r"triton[^\n]{0,80}(?:object has no attribute|unexpected keyword|missing \d+ required|takes \d+ positional)",
    ),
    Row("triton_version_vs_torch", 3, r"torch/_inductor[^\n]{0,60}|\btorch\._inductor", also=r"triton"),
    Row(
        "cpu_torch_installed",
        10,
        r"torch not compiled with cuda enabled|torch not linked with support for cuda|not compiled with cuda support",
    ),
    Row(
        "cpu_torch_installed",
        6,
        r"torch[^\n]{0,40}\+cpu\b|torch\.version\.cuda[^\n]{0,8}none|cpu-?only|cpu (?:build|wheel|version) of (?:py)?torch|cuda used to build pytorch: none",
    ),
    Row(
        "cpu_torch_installed",
        4,
        r"cuda\.is_available\(\)[^\n]{0,24}false|cuda (?:is )?(?:not available|available: false)",
    ),
    Row("cpu_torch_installed", 3, r"libtorch_cuda\.so: cannot open|libc10_cuda\.so: cannot open"),
    Row(
        "tvm_ffi_abi",
        9,
        r"typeattr[^\n]{0,40}already registered|tvm[._:-]{1,2}ffi[^\n]{0,60}(?:error|fail|abi|mismatch|incompatib|has no attribute|abort|segfault|symbol)",
    ),
    Row("tvm_ffi_abi", 7, r"tvm::ffi|tvmffi\w+|tvm_ffi\b"),
    Row("tvm_ffi_abi", 5, r"apache[-_]tvm[-_]ffi"),
    Row(
        "tvm_ffi_abi",
        4,
        r"segmentation fault|segfault|sigsegv|terminate called|aborted|no module named 'tvm",
        also=r"tvm|xgrammar",
    ),
    Row("two_cuda_majors_in_env", 10, r"nvidia-\w+(?:-\w+)?-cu1[1-4]\b", ("packages_of_two_cuda_majors",)),
    Row(
        "two_cuda_majors_in_env",
        7,
        r"(?:both|mix\w*|side.by.side|two|double)[^\n]{0,60}(?:cu12|cu13|cuda 12|cuda 13|cuda majors)",
    ),
    Row(
        "two_cuda_majors_in_env",
        5,
        r"-cu12\b[^\n]{0,120}-cu13\b|-cu13\b[^\n]{0,120}-cu12\b|\+cu12\d[^\n]{0,100}\+cu13\d|\+cu13\d[^\n]{0,100}\+cu12\d",
    ),
    Row(
        "two_cuda_majors_in_env",
        5,
        r"overwr(?:ite|ote|itten)|clobber|same (?:file|path|namespace)",
        also=r"nvidia|cu12|cu13",
    ),
    Row(
        "numpy_abi",
        10,
        r"compiled using numpy 1\.x cannot be run|_array_api not found|numpy\.dtype size changed|numpy\.ufunc size changed|binary incompatibility[^\n]{0,40}c header",
    ),
    Row(
        "numpy_abi",
        9,
        r"numpy\.core\.multiarray failed to import|numpy\._core\.multiarray failed|numpy\.core\.umath failed|compiled against (?:numpy )?(?:abi|api) version",
    ),
    Row(
        "numpy_abi",
        6,
        r"numpy is not available|np\.\w+`? was removed in the numpy 2|numpy ?<=? ?2|no module named 'numpy\._core",
    ),
    Row("torchvision_vs_torch", 10, r"operator torchvision::\w+ does not exist|couldn't load custom c\+\+ ops"),
    Row(
        "torchvision_vs_torch",
        8,
        r"partially initialized module 'torchvision'|cannot import name '\w+' from 'torchvision|no module named 'torchvision\.\w+",
    ),
    Row(
        "torchvision_vs_torch",
        8,
        r"torchvision[^\n]{0,100}(?:incompatib|requires torch|undefined symbol|mismatch|not compatible)|torchvision/(?:_c|image)\.so",
    ),
    Row(
        "transformers_vs_engine",
        8,
        r"cannot import name '?\w+'? from '?transformers|no module named 'transformers\.\w+|module '?transformers\S{0,60}'? has no attribute",
    ),
    Row(
        "transformers_vs_engine",
        9,
        r"transformers does not recognize this architecture|is already used by a transformers config|all_special_tokens_extended",
    ),
    Row(
        "transformers_vs_engine",
        7,
        r"'?\w*(?:tokenizer|config|processor)\w*'? object has no attribute|could not import module '\w+'",
    ),
    Row(
        "transformers_vs_engine",
        6,
        r"keyerror: '(?:qwen|llama|gemma|mistral|glm|deepseek|minimax|phi|internvl|default|kimi|gpt_oss|granite|exaone|olmo)\w*'",
    ),
    Row(
        "transformers_vs_engine",
        6,
        r"(?:requires?|needs?|but you have|conflict)[^\n]{0,40}transformers ?[=<>!]|transformers[ =<>]{1,3}v?\d[^\n]{0,60}(?:incompatib|conflict|not compatible|breaks|is required|broke)",
    ),
    Row("transformers_vs_engine", 2, r"transformers ?(?:==|>=|<|v|version)?:? ?[45]\.\d+"),
    Row("xformers_vs_torch", 10, r"xformers can't load c\+\+/cuda extensions|xformers was built for"),
    Row(
        "xformers_vs_torch",
        8,
        r"xformers \S{1,20} (?:requires|depends on|has requirement) torch|xformers wasn't build with cuda",
    ),
    Row(
        "xformers_vs_torch",
        5,
        r"no operator found for `?memory_efficient_attention|xformers[^\n]{0,100}undefined symbol|xformers\._c_flashattention|xformers/_c",
    ),
    Row(
        "bitsandbytes_binary_missing_for_cuda",
        9,
        r"cuda setup failed despite|libbitsandbytes_cuda\d+\w*\.so|configured cuda binary not found|no gpu support[^\n]{0,30}bitsandbytes",
    ),
    Row(
        "bitsandbytes_binary_missing_for_cuda",
        7,
        r"bitsandbytes[^\n]{0,60}(?:without gpu support|binary not|no binary|not find)|required library version not found|cget_managed_ptr|cadam32bit",
    ),
    Row("bitsandbytes_binary_missing_for_cuda", 3, r"libbitsandbytes_cpu|python -m bitsandbytes"),
    Row(
        "source_tree_shadows_installed_package",
        8,
        r"(?:import(?:s|ed|ing)?|load(?:s|ed|ing)?|pick(?:s|ed)?|resolv\w+|running|run|ran|being in|inside)[^\n]{0,50}(?:source (?:tree|dir|checkout|folder)|cloned? (?:repo|dir|folder)|repo(?:sitory)? (?:root|dir|folder)|local (?:folder|directory|checkout)|current (?:working )?directory|\bcwd\b)",
    ),
    Row(
        "source_tree_shadows_installed_package",
        6,
        r"\(unknown location\)|partially initialized module '?(?!torchvision|triton)\w+|most likely due to a circular import",
    ),
    Row(
        "source_tree_shadows_installed_package",
        5,
        r"no module named '?(?:vllm|sglang|bitsandbytes|flash_attn|xformers|deepspeed|flashinfer|triton)\.(?:_c\w*|_version|_build\w*|\w+_cuda)'?",
    ),
    Row("source_tree_shadows_installed_package", 5, r"git clone|libbitsandbytes_cpu", also=r"bitsandbytes|import"),
    Row(
        "source_tree_shadows_installed_package",
        5,
        r"(?:home|users|workspace|content|src|tmp|work|mnt|data)/(?:[\w.-]+/){0,5}(bitsandbytes|vllm|sglang|flashinfer|xformers|deepspeed)/\1/\w+",
    ),
    Row(
        "python_abi_tag",
        10,
        r"not a supported wheel on this platform|with a matching (?:python|abi|platform)|no wheels? (?:for|with|are available|is available|available)|only has wheels for",
    ),
    Row(
        "python_abi_tag",
        8,
        r"requires a different python|requires-python|python (?:version )?\S{0,8} ?(?:is )?not (?:supported|in '|compatible)",
    ),
    Row(
        "python_abi_tag",
        5,
        r"no matching distribution found|could not find a version that satisfies|no solution found when resolving|has no wheels",
    ),
    Row(
        "python_abi_tag",
        3,
        r"\bcp3\d{1,2}\b|python ?3\.1[2-9]\b",
        also=r"no matching|wheel|could not find a version|no solution",
    ),
    Row(
        "resolver_picks_other_cuda_variant",
        6,
        r"(?:--extra-index-url|--index-url|--index|--torch-backend|/whl/|wheels\.\w+\.\w+)[^\n]{0,60}cu1\d\d",
        also=r"cannot open|installed|instead|picks?|resolves?|gets?",
    ),
    Row(
        "resolver_picks_other_cuda_variant",
        7,
        r"(?:still|instead|picks?|picked|resolv\w+|installs?|installed|pulls?|gets?|got)[^\n]{0,60}\+?cu1[123]\d?\b[^\n]{0,60}(?:instead|rather than|not|although|despite|variant|\+?cu1[123]\d?)",
    ),
    Row("resolver_picks_other_cuda_variant", 5, r"unsafe-best-match|index-strategy|local version"),
    Row(
        "cuda_minor_mismatch_engine_vs_torch",
        5,
        r"cublas_?(?:lt|status)\w*[^\n]{0,60}|cublaslt",
        also=r"cu12\d|cuda 12\.\d|cublas-cu1|12\.[0-9]",
    ),
    Row(
        "cuda_minor_mismatch_engine_vs_torch",
        5,
        r"\+cu12[89]\b[^\n]{3,60}\+cu12[4-8]\b|\+cu12[4-8]\b[^\n]{3,60}\+cu12[89]\b|(?:built|compiled)[^\n]{0,30}(?:cu129|12\.9)[^\n]{0,60}12\.8",
    ),
    Row(
        "cuda_minor_mismatch_engine_vs_torch",
        4,
        r"cublas_status_(?:not_supported|invalid_value|not_initialized|internal_error|execution_failed)|cublaslt\w*create",
    ),
    # Hub
    Row("offline_mode_missing_files", 5, _OFFLINE),
    Row(
        "offline_mode_missing_files",
        8,
        r"cannot find the requested files in the (?:disk|local) cache|cannot find an appropriate cached snapshot|no such file[^\n]{0,40}(?:cached|snapshot)",
    ),
    Row(
        "offline_mode_missing_files",
        5,
        r"couldn.t connect to 'https://huggingface|air-?gapped|without internet|no internet|max retries exceeded[^\n]{0,60}huggingface",
    ),
    Row("offline_mode_regression", 5, _OFFLINE),
    Row(
        "offline_mode_regression",
        5,
        r"(?:work(?:s|ed|ing)|fine|ok)[^\n]{0,30}(?:in|with|on|for|until|before) (?:v|version |vllm |release )?\d|regress|previous(?:ly)? (?:version|release|work)|downgrad|(?:since|after|in) (?:v|upgrad|updat|0\.\d)",
        also=_OFFLINE,
    ),
    Row(
        "offline_mode_regression",
        3,
        r"(?:file_exists|list_repo_files|list_files|hf_api|get_paths_info|list_repo_tree)\S*",
        also=_OFFLINE,
    ),
    Row(
        "offline_mode_regression",
        5,
        r"local (?:path|model|dir|copy|cache|file)|broken|already (?:cached|downloaded)|is cached|cached model|from cache",
        also=_OFFLINE,
    ),
    Row(
        "resolver_picks_other_cuda_variant",
        9,
        r"(?:resolv\w+|install\w*|pick\w*|pull\w*|select\w*|gives?|gets?)[^\n]{0,60}(?:\bcu(?:da ?)?1[123](?:\.?\d)?\b|libcudart\.so\.1\d)",
        also=r"(?:--extra-index-url|--index-url|--torch-backend|/whl/|nightly|wheels\.)\S*[^\n]{0,40}cu1\d\d|cu1\d\d (?:nightly|index|channel|wheel|backend)",
    ),
)
