/* cuBLAS: a product is recorded as one library call, whatever kernels the real one would choose. Its workspace is given to
   it by PyTorch from 1.11 on and is counted; what it allocated by itself before is not, nor does PyTorch's allocator. */
#include "recorder.h"

#include <string.h>

#define COMPUTES(entry) \
    int entry(void) { \
        record(LIBRARY_CALL, #entry, 0, HOST_TO_HOST); \
        return SUCCESS; \
    }

#define COMPUTES_IN_EVERY_TYPE(operation) \
    COMPUTES(cublasS##operation) \
    COMPUTES(cublasD##operation) \
    COMPUTES(cublasC##operation) \
    COMPUTES(cublasZ##operation)

COMPUTES_IN_EVERY_TYPE(gemm_v2)
COMPUTES_IN_EVERY_TYPE(gemmBatched)
COMPUTES_IN_EVERY_TYPE(gemmStridedBatched)
COMPUTES_IN_EVERY_TYPE(gemv_v2)
COMPUTES(cublasSgemmEx)
COMPUTES(cublasGemmEx)
COMPUTES(cublasGemmBatchedEx)
COMPUTES(cublasGemmStridedBatchedEx)
COMPUTES(cublasSdot_v2)
COMPUTES(cublasDdot_v2)
COMPUTES(cublasDotEx)
COMPUTES(cublasLtMatmul)

/* PyTorch keeps a workspace for each handle and stream, and makes a handle for each thread: autograd's threads have
   workspaces of their own. */
int cublasCreate_v2(void **handle) { return create_handle(handle); }
int cublasDestroy_v2(void *handle) { return destroy_handle(handle); }
int cublasLtCreate(void **handle) { return create_handle(handle); }
int cublasLtDestroy(void *handle) { return destroy_handle(handle); }

SUCCEEDS(cublasSetStream_v2)
SUCCEEDS(cublasSetWorkspace_v2)
SUCCEEDS(cublasSetMathMode)
SUCCEEDS(cublasSetPointerMode_v2)
SUCCEEDS(cublasSetAtomicsMode)

static int zero(int *into) {
    *into = 0;
    return SUCCESS;
}

int cublasGetMathMode(void *handle, int *mode) { return (void)handle, zero(mode); }
int cublasGetPointerMode_v2(void *handle, int *mode) { return (void)handle, zero(mode); }

CREATES(cublasLtMatmulDescCreate)
CREATES(cublasLtMatmulPreferenceCreate)
CREATES(cublasLtMatrixLayoutCreate)
SUCCEEDS(cublasLtMatmulDescDestroy)
SUCCEEDS(cublasLtMatmulDescSetAttribute)
SUCCEEDS(cublasLtMatmulPreferenceDestroy)
SUCCEEDS(cublasLtMatmulPreferenceSetAttribute)
SUCCEEDS(cublasLtMatrixLayoutDestroy)
SUCCEEDS(cublasLtMatrixLayoutSetAttribute)

/* cublasLtMatmulHeuristicResult_t: one algorithm that needs no workspace is always found. */
struct heuristic {
    uint64_t algorithm[8];
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c, void *d, void *preference,
                                   int wanted, struct heuristic *into, int *found) {
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    *found = wanted > 0;
    if (*found) *into = (struct heuristic){.waves = 1};
    return SUCCESS;
}

/* NVTX marks ranges for a profiler that is not there. */
SUCCEEDS(nvtxMarkA)
SUCCEEDS(nvtxRangePushA)
SUCCEEDS(nvtxRangePop)
SUCCEEDS(nvtxRangeEnd)
SUCCEEDS(nvtxRangeStartA)

/* CUPTI is told that there is nothing to profile, which is no fault of a measurement. Its errors have a text, and what it
   would hand out is 0: callers print the one and read the other though the call failed. */
int cuptiGetResultString(int error, const char **text) {
    (void)error;
    *text = "refused by the recorder";
    return SUCCESS;
}

#define HANDS_OUT_NOTHING(entry, type, before) \
    int entry(before type *into) { \
        *into = 0; \
        return INVALID_VALUE; \
    }
#define AFTER_ONE void *first,
#define AFTER_TWO void *first, void *second,

#pragma GCC diagnostic ignored "-Wunused-parameter"
HANDS_OUT_NOTHING(cuptiGetVersion, unsigned, )
HANDS_OUT_NOTHING(cuptiSubscribe, void *, )
HANDS_OUT_NOTHING(cuptiGetTimestamp, uint64_t, )
HANDS_OUT_NOTHING(cuptiGetDeviceId, unsigned, AFTER_ONE)
HANDS_OUT_NOTHING(cuptiActivityPopExternalCorrelationId, uint64_t, AFTER_ONE)
HANDS_OUT_NOTHING(cuptiActivityGetNextRecord, void *, AFTER_TWO)
HANDS_OUT_NOTHING(cuptiActivityGetNumDroppedRecords, size_t, AFTER_TWO)
