/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that includes no header of NVSHMEM: it looks for its symbols, linked with it or opened. */
#include <dlfcn.h>

#include <cstdio>

extern "C" void nvshmem_init(void) __attribute__((weak));

template <typename F> static F *symbol(void *library, const char *name)
{
	return reinterpret_cast<F *>(dlsym(library, name));
}

int main()
{
	void *library = dlopen("libnvshmem_host.so.3", RTLD_LAZY);
	auto *init_attr = library ? symbol<int(unsigned, void *)>(library, "nvshmemx_hostlib_init_attr") : nullptr;
	auto *give = library ? symbol<void *(size_t)>(library, "nvshmem_malloc") : nullptr;
	auto *take = library ? symbol<void(void *)>(library, "nvshmem_free") : nullptr;
	auto *put = library ? symbol<void(int *, const int *, size_t, int)>(library, "nvshmem_int_put") : nullptr;
	auto *add = library ? symbol<int(int *, int, int)>(library, "nvshmem_int_atomic_fetch_add") : nullptr;
	auto *quiet = library ? symbol<void()>(library, "nvshmem_quiet") : nullptr;
	auto *sum = library ? symbol<int(int, int *, const int *, size_t)>(library, "nvshmem_int_sum_reduce") : nullptr;
	auto *end = library ? symbol<void()>(library, "nvshmemx_hostlib_finalize") : nullptr;
	int two = 2, *word;

	if (!init_attr || !give || !take || !put || !add || !quiet || !sum || !end) {
		std::fprintf(stderr, "found: %s\n", library ? "a symbol is missing" : dlerror());
		return 1;
	}
	if (init_attr(0, nullptr) || !(word = static_cast<int *>(give(2 * sizeof(int)))))
		return 2;
	put(word, &two, 1, 0);
	quiet();
	if (add(word, 5, 0) != 2 || add(word, -5, 0) != 7)
		return 4;
	if (sum(0, word + 1, word, 1))
		return 3;
	std::printf("linked %d, sum %d\n", nvshmem_init != nullptr, word[1]);
	take(word);
	end();
	return 0;
}
