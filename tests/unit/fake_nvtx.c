// SPDX-License-Identifier: BSD-3-Clause
/* What a profiler loads into a program to hear of its ranges: keeps their names, one behind the other, and how many
 * are open. */
#include <string.h>

#include <nvtx3/nvToolsExt.h>

#define FAKE __attribute__((visibility("default")))

FAKE char fake_nvtx_names[4096];
FAKE int fake_nvtx_open;
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);

static int NVTX_API push(const char *name)
{
	size_t len = strlen(fake_nvtx_names);

	if (len + strlen(name) + 2 < sizeof(fake_nvtx_names)) {
		strcat(fake_nvtx_names, name);
		strcat(fake_nvtx_names, " ");
	}
	return fake_nvtx_open++;
}

static int NVTX_API pop(void)
{
	return --fake_nvtx_open;
}

FAKE int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
	const NvtxExportTableCallbacks *t = (const NvtxExportTableCallbacks *)get(NVTX_ETID_CALLBACKS);
	NvtxFunctionTable table = NULL;
	unsigned int n = 0;

	if (!t || !t->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &table, &n) || n <= NVTX_CBID_CORE_RangePop)
		return 0;
	*table[NVTX_CBID_CORE_RangePushA] = (NvtxFunctionPointer)push;
	*table[NVTX_CBID_CORE_RangePop] = (NvtxFunctionPointer)pop;
	return 1;
}
