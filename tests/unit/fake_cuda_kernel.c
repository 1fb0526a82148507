// SPDX-License-Identifier: BSD-3-Clause
/* Modules and launches: a kernel runs in the thread that launches it, behind what is on its stream. So does what a
 * stream stores by itself. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "runtime/cuda/cuda_api.h"
#include "tests/unit/fake_cuda.h"

enum { INVALID = 1, NOT_SUPPORTED = 801, MOST = 8 };

#define FAKE gdri_cu_result __attribute__((visibility("default")))
#define DECLARE(name, symbol, args) FAKE fake_##name args __asm__(symbol);
GDRI_CUDA_FUNCTIONS(DECLARE)

struct CUmod_st {
	int used;
};

struct CUfunc_st {
	int module;
	const char *name;
};

static struct CUmod_st modules[MOST + 1]; /* by their numbers: from 1 on */
static struct CUfunc_st functions[4 * MOST];
static int n_modules, n_functions; /* in a process that loads with one thread at a time */

static int number_of(const struct CUmod_st *module)
{
	return module >= modules && module <= modules + MOST ? (int)(module - modules) : 0;
}

void *fake_module_variable(const struct CUmod_st *module)
{
	int number = number_of(module);

	return number && fake_cuda.constants ? fake_cuda.constants(number) : NULL;
}

gdri_cu_result fake_module_load(struct CUmod_st **module, const void *image)
{
	if (!fake_cuda.kernel)
		return NOT_SUPPORTED;
	if (!image || n_modules == MOST)
		return INVALID;
	if (fake_cuda.load_result)
		return fake_cuda.load_result;
	*module = &modules[++n_modules];
	(*module)->used = 1;
	fake_cuda.modules++;
	return 0;
}

gdri_cu_result fake_module_unload(struct CUmod_st *module)
{
	if (!number_of(module) || !module->used)
		return INVALID;
	module->used = 0;
	fake_cuda.modules--;
	return 0;
}

gdri_cu_result fake_module_function(struct CUfunc_st **f, struct CUmod_st *module, const char *name)
{
	if (!number_of(module) || n_functions == 4 * MOST)
		return INVALID;
	*f = &functions[n_functions++];
	**f = (struct CUfunc_st){number_of(module), name};
	return 0;
}

static gdri_cu_result run(struct CUfunc_st *f, unsigned int blocks, gdri_cu_stream stream, void **args)
{
	gdri_cu_result r = stream ? fake_stream_query(stream) : 0;

	if (!r && !modules[f->module].used)
		r = INVALID;
	if (!r)
		fake_cuda.kernel(f->module, f->name, blocks, args[0]);
	return r;
}

gdri_cu_result fake_launch(struct CUfunc_st *f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
			   unsigned int by, unsigned int bz, unsigned int shared, gdri_cu_stream stream, void **args,
			   void **extra)
{
	return gy != 1 || gz != 1 || !bx || by != 1 || bz != 1 || shared || extra ? INVALID : run(f, gx, stream, args);
}

gdri_cu_result fake_launch_ex(const struct gdri_cu_launch *how, struct CUfunc_st *f, void **args, void **extra)
{
	return !how->grid[0] || !how->block[0] || extra ? INVALID : run(f, how->grid[0], how->stream, args);
}

gdri_cu_result fake_copy_in(gdri_cu_ptr dst, const void *src, size_t len, gdri_cu_stream stream)
{
	gdri_cu_result r = fake_stream_query(stream);

	if (!r)
		memcpy(fake_reach(dst), src, len);
	return r;
}

gdri_cu_result fake_write64(gdri_cu_stream stream, gdri_cu_ptr at, uint64_t value, unsigned int flags)
{
	gdri_cu_result r = flags ? INVALID : fake_stream_query(stream);

	if (!r) /* pairs with the acquire of whoever waits for the word */
		__atomic_store_n((uint64_t *)fake_reach(at), value, __ATOMIC_RELEASE);
	return r;
}
