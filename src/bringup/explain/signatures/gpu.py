# ruff: noqa: E501 - rows of a table, one a line where they fit
"""Device code, engines' features per architecture, memory.

Wordings: torch.cuda, cudaGetErrorString, Triton, FlashAttention, vLLM's and SGLang's backend gates, CUTLASS, DeepGEMM, TensorRT-LLM.
"""

from __future__ import annotations

from bringup.explain.signatures.row import Row

_NO_IMAGE = r"no kernel image|kernel image[^\n]{0,16}(?:not|un) ?available|cudaerrornokernelimagefordevice|no_binary_for_gpu|no binary for gpu|\berror 209\b|no_kernel_image"
_TORCH_ARCH = (
    r"is not compatible with the current pytorch installation|the current pytorch install supports cuda capabilities"
)
_OWNER = r"(?:_c\.so|_c\.abi3|_moe_c|torch\.ops\.|sgl_kernel|sgl-kernel|common_ops|flash_attn|flash-attn|flashinfer|marlin|cutlass|deep_gemm|xformers|awq|gptq|\bmoe\b|causal_conv1d|mamba|exllama|bitsandbytes|fused_\w+|rms_?norm|csrc/|silu_and_mul|reshape_and_cache|topk_softmax|lightllm|per_token_\w+|rotary)"
_OOM = (
    r"cuda out of memory|outofmemoryerror|cudaerrormemoryallocation|cuda error: out of memory|cuda_error_out_of_memory"
)
_GRAPH = r"captur\w*[^\n]{0,24}graph|graph[^\n]{0,16}captur|cuda ?graphs?\b"

ROWS: tuple[Row, ...] = (
    # Which device code there is
    Row("no_sass_for_gpu_in_torch", 9, _TORCH_ARCH),
    Row("no_sass_for_gpu_in_torch", 5, _NO_IMAGE),
    Row("no_sass_for_gpu_in_torch", 5, _NO_IMAGE, ("torch_without_blackwell",)),
    Row("no_sass_for_gpu_in_torch", 3, r"not compatible with the current pytorch", ("blackwell",)),
    Row(
        "gpu_too_old_for_wheel",
        10,
        r"(?:pytorch|it|which) (?:no longer supports|is too old)[^\n]{0,40}gpu|minimum cuda capability supported by this library|too old to be supported by (?:the )?triton|only supports? cuda capability (?:>=|[0-9])|no longer supports this gpu",
    ),
    Row("gpu_too_old_for_wheel", 10, _NO_IMAGE, ("gpu_before_turing",)),
    Row("gpu_too_old_for_wheel", 10, _TORCH_ARCH, ("gpu_before_turing",)),
    Row(
        "gpu_too_old_for_wheel",
        8,
        r"(?:removed|dropped|drops?|ended|no longer|without)[^\n]{0,24}(?:support)?[^\n]{0,16}(?:maxwell|pascal|volta|turing|kepler|sm_?[3567]\d)",
    ),
    Row("gpu_too_old_for_wheel", 4, _NO_IMAGE, ("gpu_turing",)),
    Row(
        "gpu_too_old_for_wheel",
        5,
        r"compute capability[^\n]{0,40}(?:too (?:old|low)|at least|or (?:higher|newer|above)|>= ?[78]\.\d|minimum)|(?:pascal|volta|maxwell|kepler|turing)[^\n]{0,60}(?:not supported|unsupported|dropped|no longer|removed)|(?:dropped|removed|no) (?:support for )?(?:pascal|volta|maxwell|sm_?[567][0-9])",
    ),
    Row(
        "gpu_too_old_for_wheel",
        5,
        r"not (?:compatible|supported)|unsupported|requires",
        ("gpu_before_turing",),
        also=r"sm_?\d\d|compute capability|gpu arch|cuda capability|turing|ampere",
    ),
    Row("no_sass_for_gpu_in_extension", 6, _NO_IMAGE),
    Row("no_sass_for_gpu_in_extension", 3, _NO_IMAGE, also=_OWNER),
    Row("no_sass_for_gpu_in_extension", -4, _NO_IMAGE, also=_TORCH_ARCH),
    Row(
        "no_sass_for_gpu_in_extension",
        3,
        r"(?:not|n't|isn't|lacks?|without|missing|no)[^\n]{0,40}(?:compiled|built|cubin|sass|kernels?)[^\n]{0,40}(?:sm_?\d{2,3}|compute capability|1[02]\.\d)",
    ),
    Row(
        "no_sass_for_gpu_in_extension",
        4,
        r"invalid device function|cudaerrorinvaliddevicefunction|named symbol not found|unsupported cuda arch",
        unless=r"nccl",
    ),
    Row("arch_specific_cubin_mismatch", 9, r"this kernel only supports sm|kernel only supports sm\d+"),
    Row(
        "arch_specific_cubin_mismatch",
        7,
        r"sm_?10[03][af]\b[^\n]{0,80}(?:cubin|kernel|only|ship)|(?:cubin|only|ship)\w*[^\n]{0,60}sm_?10[03][af]\b",
    ),
    Row(
        "arch_specific_cubin_mismatch",
        6,
        r"device kernel image is invalid|cuda_error_invalid_image|cudaerrorinvalidkernelimage|invalid kernel image|\berror 200\b",
    ),
    Row("arch_specific_cubin_mismatch", 3, _NO_IMAGE, ("gpu_10_3_or_11",)),
    Row(
        "arch_specific_cubin_mismatch",
        3,
        r"trtllm.?gen[^\n]{0,40}(?:not found|missing|cubin)|cublas_status_execution_failed",
        ("gpu_10_3_or_11",),
    ),
    Row(
        "ptx_newer_than_driver",
        9,
        r"compiled with an unsupported toolchain|cudaerrorunsupportedptxversion|cuda_error_unsupported_ptx_version|unsupported ptx version|\berror 222\b|unsupported toolchain",
    ),
    Row("ptx_newer_than_driver", 4, r"ptx[^\n]{0,60}(?:newer than|too new|jit)[^\n]{0,30}driver"),
    Row(
        "ptx_forward_jit_wrong_results",
        5,
        r"\bptx\b",
        ("blackwell",),
        also=r"garbage|gibberish|wrong|nonsense|incorrect|nan\b|!!!",
    ),
    Row(
        "ptx_forward_jit_wrong_results",
        5,
        r"garbage|gibberish|(?:wrong|incorrect|nonsens\w+|broken) (?:result|output|answer|token)s?|!!!!",
        ("blackwell",),
    ),
    # Engines' features
    Row(
        "attention_backend_unsupported_on_arch",
        9,
        r"flash_?-?attention(?:-?\d)?[^\n]{0,30}(?:only supports?|requires?|is only supported|supports only|not supported)[^\n]{0,60}(?:ampere|hopper|sm|compute|gpu|device|blackwell)",
    ),
    Row(
        "attention_backend_unsupported_on_arch",
        10,
        r"requires sm ?>= ?80 and sm ?<= ?90|\bfa ?[34]\b[^\n]{0,40}(?:only supports?|only works?|is only|not supported|unsupported|requires?)[^\n]{0,40}(?:sm|hopper|ampere|gpu|blackwell)",
    ),
    Row(
        "attention_backend_unsupported_on_arch",
        8,
        r"(?:trtllm|fmha|flashmla|cutlass_mla|flash_mla|mla|fa3|attention|attn)[^\n]{0,60}(?:unsupported|not supported|only supported|only supports|is not available|does not support|requires)[^\n]{0,60}(?:sm|arch|compute|gpu|device|hopper|blackwell|capabilit|hardware)?",
        unless=r"fp8e4nv",
    ),
    Row(
        "attention_backend_unsupported_on_arch",
        7,
        r"unsupported (?:architecture|arch|gpu|sm)[^\n]{0,60}(?:fmha|attention|mla|trtllm)|(?:fmha|trtllm|attention|mla)[^\n]{0,80}unsupported (?:architecture|arch|sm)",
    ),
    Row(
        "attention_backend_unsupported_on_arch",
        7,
        r"no valid attention backend|selected backend[^\n]{0,60}is not valid|cannot use flash|compute capability not supported|missing trtllm-?gen kernel|trtllm-?gen kernels? not found",
    ),
    Row(
        "attention_backend_unsupported_on_arch",
        5,
        r"(?:flash[-_]?attn|flash-attention|flash_attention|fa)[-_ ]?3\b|flash_attn_3|flash_attn_interface|hopper/",
        ("!hopper",),
    ),
    Row(
        "attention_backend_unsupported_on_arch",
        9,
        r"\bfa3\b|flash[-_ ]?att(?:n|ention)[-_ ]?3|/hopper/",
        ("!hopper",),
        also=_NO_IMAGE,
    ),
    Row("attention_backend_unsupported_on_arch", 2, r"attention[-_ ]backend|vllm_attention_backend"),
    Row(
        "fp8_dtype_unsupported_on_arch",
        10,
        r"fp8e4nv not supported|torch\._scaled_mm is only supported|the supported fp8 dtypes are",
    ),
    Row(
        "fp8_dtype_unsupported_on_arch",
        9,
        r"quantization method[^\n]{0,30}is not supported for the current gpu|not supported for the current gpu\. ?minimum capability",
    ),
    Row(
        "fp8_dtype_unsupported_on_arch",
        7,
        r"(?:fp8|float8|e4m3)\w*[^\n]{0,60}(?:not supported|unsupported|only supported|requires?|not implemented)[^\n]{0,60}(?:compute|capab|sm|gpu|arch|ada|hopper|8\.9|cuda)?",
        unless=r"block.?scal",
    ),
    Row("fp8_dtype_unsupported_on_arch", 7, r"_scaled_mm", ("gpu_before_ada",)),
    Row("fp8_dtype_unsupported_on_arch", 3, r"\bfp8\w*|float8_e4m3", ("gpu_before_ada",)),
    Row(
        "fp8_block_scaling_unsupported_on_arch",
        8,
        r"(?:block.?(?:wise|scal\w+)[^\n]{0,40}(?:fp8|gemm|moe)|fp8[^\n]{0,20}block.?(?:wise|scal\w+))[^\n]{0,80}(?:not supported|unsupported|only|requires|not implemented|hopper|sm ?_?\d)",
    ),
    Row(
        "fp8_block_scaling_unsupported_on_arch",
        6,
        r"fp8_?block_?scal\w*|blockscale\w*_gemm|fp8_blockscale|block.?scaling|w8a8_block_fp8",
        ("blackwell_desktop",),
    ),
    Row(
        "nvfp4_moe_wrong_or_missing_on_sm120",
        6,
        r"(?:nvfp4|fp4|mxfp4)[^\n]{0,80}(?:moe|expert|grouped|group_mm)|(?:moe|expert|grouped|group_mm)[^\n]{0,80}(?:nvfp4|fp4)",
    ),
    Row("nvfp4_moe_wrong_or_missing_on_sm120", 4, r"nvfp4|fp4", ("blackwell_desktop",)),
    Row(
        "nvfp4_moe_wrong_or_missing_on_sm120",
        5,
        r"grouped.?gemm|group_gemm|kerrorinternal|failed to (?:initialize|implement|run)[^\n]{0,30}gemm|no compiled[^\n]{0,40}(?:cutlass|moe|mm)|get_cutlass\w*moe\w*",
    ),
    Row(
        "engine_pins_kernel_lib_without_arch",
        9,
        r"deep_?gemm[^\n]{0,140}(?:unsupported architecture|unknown recipe|assertion error|unsupported arch)|unknown recipe",
    ),
    Row(
        "engine_pins_kernel_lib_without_arch",
        6,
        r"assertion error[^\n]{0,140}(?:unsupported arch|recipe|\.hpp)|deep_?gemm[^\n]{0,80}(?:sm_?1[02]\d|not support|fail|error)",
    ),
    Row(
        "engine_gate_too_wide",
        6,
        r"(?:gate|check|condition|family|is_device_capability_family|capability)[^\n]{0,60}(?:too (?:wide|broad|permissive)|includes?|also (?:matches|enables|true)|matches)[^\n]{0,60}(?:12\.1|sm_?121|gb10|12)",
    ),
    Row(
        "engine_gate_too_wide",
        4,
        r"sm_?121|gb10|dgx spark|12\.1",
        ("gb10",),
        also=r"enabled|selected|selects|picks|chooses|default|gate|family",
    ),
    Row(
        "triton_shared_memory_limit",
        10,
        r"out of resource:? shared memory|reducing block sizes or `?num_stages|outofresources",
    ),
    Row(
        "triton_shared_memory_limit",
        7,
        r"shared[- ]memory[^\n]{0,60}(?:hardware limit|limit|exceed|required|too large|insufficient|not enough)|(?:exceed\w*|too much|insufficient|not enough)[^\n]{0,30}shared[- ]memory|smem[^\n]{0,40}(?:limit|exceed)",
        unless=r"/dev/shm|shm-size|dataloader",
    ),
    # Memory
    Row(
        "no_memory_left_for_kv_cache",
        10,
        r"no available memory for the cache blocks|available kv cache memory: ?-|not enough memory\. please try to increase --?mem",
    ),
    Row(
        "no_memory_left_for_kv_cache",
        9,
        r"kv cache[^\n]{0,60}(?:larger than the available|is needed|not enough|insufficient|negative)|larger than the maximum number of tokens that can be stored in kv cache|less than desired gpu memory utilization",
    ),
    Row(
        "no_memory_left_for_kv_cache",
        5,
        r"kv ?cache|gpu[-_]memory[-_]utilization|mem[-_]fraction[-_]static",
        also=_OOM + r"|no available|not enough|fail|negative|larger",
    ),
    Row("no_memory_left_for_kv_cache", 4, _OOM, unless=_GRAPH),
    Row("oom_cuda_graph_capture", 9, r"capture cuda graph failed|graph capture failed"),
    Row("oom_cuda_graph_capture", 8, _GRAPH, also=_OOM),
    Row("oom_cuda_graph_capture", 4, _OOM, also=_GRAPH),
    Row(
        "engine_gate_too_wide",
        7,
        r"(?:is|has|supports)_\w{0,30}(?:support|enabl|avail)\w*\(?\)?[^\n]{0,6}(?:returns )?true|(?:gate|check)s? (?:let|pass|allow|accept)\w*",
    ),
    Row("no_sass_for_gpu_in_extension", 4, _NO_IMAGE, ("!torch_without_blackwell",)),
    Row("no_sass_for_gpu_in_torch", -2, _NO_IMAGE, ("!torch_without_blackwell",), unless=_TORCH_ARCH),
    Row(
        "attention_backend_unsupported_on_arch",
        5,
        r"unsupported arch(?:itecture)?\b",
        unless=r"deep_?gemm|unsupported gpu architecture|recipe|hyperconnection",
    ),
    Row(
        "attention_backend_unsupported_on_arch",
        8,
        r"tllmgenfmharunner|fmharunner|attention sinks? (?:is|are) only supported|only [^\n]{0,60}backends? (?:is|are) supported|attention_backend=\w+[^\n]{0,40}(?:not|unsupported|invalid)|got attention_backend",
    ),
)
