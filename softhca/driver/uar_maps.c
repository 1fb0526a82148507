/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the program has mapped its doorbell pages; nothing writes down its mmap(). */
#include <string.h>

#include "softhca/driver/control.h"
#include "softhca/driver/shim.h"

struct search {
	bool (*fn)(void *arg, uint64_t start, uint64_t end);
	void *arg;
	bool seen[HCA_UAR_PAGES];
	bool ok;
};

/* A GPU's stores meet no page protection of ours; under valgrind a thread that waits for a page
 * keeps all others from running. */
static bool is_foreign(const char *path)
{
	return strstr(path, "/vgpreload_") || strstr(path, "/libcuda.so") ||
	       path_is_gpu(path);
}

static bool uar_look_at_map(void *arg, const struct maps_line *m)
{
	const uint8_t *own = hca_uar_page(0);
	struct search *s = arg;

	if (is_foreign(m->path)) {
		s->ok = false;
		return false;
	}
	if (!m->ino || shim_file_kind(m->dev, m->ino) != SHIM_DEVICE ||
	    m->start - (uintptr_t)own < (uint64_t)HCA_UAR_PAGES * HCA_UAR_PAGE || hca_is_dm(m->offset))
		return true;
	for (uint64_t at = m->start; at < m->end; at += HCA_UAR_PAGE) {
		uint64_t page = (m->offset + at - m->start) / HCA_UAR_PAGE;

		if (page < HCA_UAR_PAGES)
			s->seen[page] = true;
	}
	s->ok = s->fn(s->arg, m->start, m->end);
	return s->ok;
}

bool hca_uar_mappings(bool (*fn)(void *arg, uint64_t start, uint64_t end), void *arg)
{
	static struct search s;

	s = (struct search){ .fn = fn, .arg = arg, .ok = true };
	if (!maps_each(uar_look_at_map, &s) || !s.ok)
		return false;
	for (uint32_t page = 0; page < hca_uar_pages_used(); page++)
		if (uar_is_taken(page) && !s.seen[page])
			return false;
	return true;
}
