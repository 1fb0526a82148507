// SPDX-License-Identifier: BSD-3-Clause
/* NVRTC compiles kernels with gdr's headers, in each way that programs define, without a warning. To PTX, for
 * its ptxas is that of nvcc. Needs no GPU.
 * usage: nvrtc INCLUDE_DIR.. (those of the headers) */
#include <stdio.h>
#include <stdlib.h>

#include <nvrtc.h>

#define MAX_DIRS 8

static const char kernels[] =
	"#include <gdr.h>\n"
	"struct args { uint64_t *to; int *status; };\n"
	"GDR_KERNEL(all, struct args, a)\n"
	"{\n"
	"	int pe = (gdr_my_pe() + 1) % gdr_n_pes();\n"
	"	*a.status = gdr_uint64_p(a.to, 1, pe);\n"
	"	*a.status |= gdr_put_nbi(a.to, a.to + 8, 64, pe);\n"
	"	*a.to = gdr_uint64_atomic_fetch_add(a.to + 1, 2, pe);\n"
	"	*a.status |= gdr_put_signal(a.to, a.to + 8, 64, a.to + 2, 1, GDR_SIGNAL_SET, pe);\n"
	"	*a.status |= gdr_signal_wait_until(a.to + 2, GDR_CMP_GE, 1);\n"
	"	*a.status |= gdr_quiet() | gdr_barrier_all();\n"
	"}\n";

static int compile(const char *arch, const char *define, int n_dirs, char **dirs)
{
	static char paths[MAX_DIRS][512];
	const char *options[MAX_DIRS + 4] = {arch, "--std=c++17", define};
	int n = 3, failed;
	nvrtcProgram program;
	size_t size = 0;
	char *log;

	for (int i = 0; i < n_dirs; i++) {
		snprintf(paths[i], sizeof(paths[i]), "-I%s", dirs[i]);
		options[n++] = paths[i];
	}
	if (nvrtcCreateProgram(&program, kernels, "kernels.cu", 0, NULL, NULL))
		return 1;
	failed = nvrtcCompileProgram(program, n, options) != NVRTC_SUCCESS;
	nvrtcGetProgramLogSize(program, &size);
	log = size > 1 ? (char *)calloc(1, size) : NULL;
	if (log && !nvrtcGetProgramLog(program, log))
		fprintf(stderr, "%s %s:\n%s\n", arch, define, log);
	failed |= log != NULL; /* a warning is one that the user sees, too */
	free(log);
	nvrtcDestroyProgram(&program);
	return failed;
}

int main(int argc, char **argv)
{
	static const char *const defines[] = {"-DPLAIN", "-DGDR_CHECKED", "-DGDR_ANY_ADDRESS", "-DGDR_NO_QUEUES"};
	int failed = 0;

	if (argc < 2 || argc - 1 > MAX_DIRS) {
		fprintf(stderr, "usage: nvrtc INCLUDE_DIR..\n");
		return 2;
	}
	for (unsigned i = 0; i < sizeof(defines) / sizeof(defines[0]); i++)
		failed |= compile("--gpu-architecture=compute_90", defines[i], argc - 1, argv + 1);
	failed |= compile("--gpu-architecture=compute_80", defines[0], argc - 1, argv + 1);
	return failed;
}
