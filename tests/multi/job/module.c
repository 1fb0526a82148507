// SPDX-License-Identifier: BSD-3-Clause
/* Kernels that the program compiles with NVRTC and loads by hand: they find the library by
 * gdr_module_init, and not before. usage: module INCLUDE_DIR.. (those of the headers). A program for
 * machines with GPUs; it holds no CUDA code itself. */
#include <gdr/host.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <nvrtc.h>

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "module.c:%d: not true: %s\n", __LINE__, #cond);           \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static const char ring[] =
	"#include <gdr.h>\n"
	"struct args { uint64_t *to; int *status; };\n"
	"GDR_KERNEL(ring, struct args, a)\n"
	"{\n"
	"	int me = gdr_my_pe(), n = gdr_n_pes();\n"
	"	*a.status = me < 0 ? me : gdr_uint64_p(a.to, 1000 + me, (me + 1) % n);\n"
	"	if (!*a.status)\n"
	"		*a.status = gdr_barrier_all();\n"
	"}\n";
static const char stranger[] = "extern \"C\" __global__ void nothing(void) {}\n";

struct args {
	uint64_t *to;
	int *status;
};

/* As a library of the driver's, which loads it for each context, or as a module. */
static CUmodule load_image(const char *image, CUlibrary *library)
{
	CUmodule module;

	if (!library) {
		CHECK(!cuModuleLoadData(&module, image));
		return module;
	}
	CHECK(!cuLibraryLoadData(library, image, NULL, NULL, 0, NULL, NULL, 0));
	CHECK(!cuLibraryGetModule(&module, *library));
	return module;
}

static CUmodule load(const char *source, CUlibrary *library, int argc, char **argv)
{
	char arch[32], dirs[8][512];
	static char log[1 << 20];
	const char *options[10] = {arch, "--std=c++17"};
	int major, minor, i, n = 2;
	nvrtcProgram program;
	CUdevice device;
	CUmodule module;
	size_t size;
	char *image;

	CHECK(!cuCtxGetDevice(&device));
	cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
	cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
	snprintf(arch, sizeof(arch), "--gpu-architecture=sm_%d%d", major, minor);
	for (i = 1; i < argc && i <= 8; i++) {
		snprintf(dirs[i - 1], sizeof(dirs[0]), "-I%s", argv[i]);
		options[n++] = dirs[i - 1];
	}
	CHECK(!nvrtcCreateProgram(&program, source, "kernels.cu", 0, NULL, NULL));
	if (nvrtcCompileProgram(program, n, options)) {
		nvrtcGetProgramLogSize(program, &size);
		if (size < sizeof(log))
			nvrtcGetProgramLog(program, log);
		fprintf(stderr, "%s\n", log);
		exit(1);
	}
	CHECK(!nvrtcGetCUBINSize(program, &size));
	image = (char *)malloc(size);
	CHECK(image && !nvrtcGetCUBIN(program, image));
	module = load_image(image, library);
	free(image);
	nvrtcDestroyProgram(&program);
	return module;
}

static int run(CUmodule module, const struct args *a)
{
	struct args copy = *a;
	void *params[] = {&copy};
	CUfunction f;
	int status = 1;

	CHECK(!cuModuleGetFunction(&f, module, "ring"));
	CHECK(!cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL));
	CHECK(!cuCtxSynchronize());
	CHECK(!gdr_host_get(&status, a->status, sizeof(status), gdr_host_my_pe()));
	return status;
}

int main(int argc, char **argv)
{
	CUmodule module, other, of_library;
	CUlibrary library;
	struct args a;
	uint64_t got = 0;
	int me, n;

	setenv("GDR_DEVICE", "cuda", 1);
	CHECK(!gdr_init());
	me = gdr_host_my_pe();
	n = gdr_host_n_pes();
	a.to = (uint64_t *)gdr_calloc(1, sizeof(uint64_t));
	a.status = (int *)gdr_calloc(1, sizeof(int));
	CHECK(a.to && a.status);
	module = load(ring, NULL, argc, argv);
	other = load(stranger, NULL, argc, argv);
	of_library = load(ring, &library, argc, argv);
	CHECK(run(module, &a) == -GDR_ESTATE);
	CHECK(gdr_module_init(other) == -GDR_EINVAL);
	CHECK(gdr_module_finalize(other) == -GDR_EINVAL);
	CHECK(gdr_module_init(NULL) == -GDR_EINVAL);
	CHECK(!gdr_module_init(module) && !gdr_module_init(module));
	CHECK(!run(module, &a));
	CHECK(!gdr_host_get(&got, a.to, sizeof(got), me));
	CHECK(got == 1000 + (uint64_t)((me + n - 1) % n));
	CHECK(!gdr_barrier_all());
	CHECK(!gdr_module_finalize(module));
	CHECK(run(module, &a) == -GDR_ESTATE);
	CHECK(run(of_library, &a) == -GDR_ESTATE);
	CHECK(!gdr_module_init(of_library));
	CHECK(!run(of_library, &a));
	CHECK(!gdr_module_finalize(of_library) && !cuLibraryUnload(library));
	CHECK(!gdr_module_init(module));
	CHECK(!gdr_finalize()); /* hides the library from it */
	if (me == 0)
		printf("module: all right on %d PEs\n", n);
	return 0;
}
