// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/ofi/keys.h"

void gdri_ofi_keys_open(struct gdri_ofi_keys *k, size_t bytes)
{
	pthread_mutex_init(&k->lock, NULL);
	k->last = bytes >= sizeof(k->last) ? UINT64_MAX : (1ull << (8 * bytes)) - 1;
	k->next = 0;
	k->n = 0;
}

/* k->n: it is not. */
static uint32_t keys_find(const struct gdri_ofi_keys *k, uint64_t key)
{
	uint32_t i;

	for (i = 0; i < k->n && k->used[i] != key; i++)
		;
	return i;
}

static uint64_t keys_behind(const struct gdri_ofi_keys *k, uint64_t key)
{
	return key == k->last ? 0 : key + 1;
}

bool gdri_ofi_keys_take(struct gdri_ofi_keys *k, uint64_t *key)
{
	bool is;

	pthread_mutex_lock(&k->lock);
	is = k->n < GDRI_OFI_KEYS && k->n <= k->last;
	while (is && keys_find(k, k->next) < k->n)
		k->next = keys_behind(k, k->next);
	if (is) {
		*key = k->used[k->n++] = k->next;
		k->next = keys_behind(k, k->next);
	}
	pthread_mutex_unlock(&k->lock);
	return is;
}

void gdri_ofi_keys_give(struct gdri_ofi_keys *k, uint64_t key)
{
	uint32_t i;

	pthread_mutex_lock(&k->lock);
	i = keys_find(k, key);
	if (i < k->n)
		k->used[i] = k->used[--k->n];
	pthread_mutex_unlock(&k->lock);
}
