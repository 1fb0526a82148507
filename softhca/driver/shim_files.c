/* SPDX-License-Identifier: BSD-3-Clause */
/* Which inodes are ours: device files (memfds) and event channels (pipes).
 * The interposers look here before they take any lock, so that the program's
 * other files never wait for softhca. */
#include "softhca/driver/shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>

#define MAX_FILES 4096

/* kind is stored last (release) and read first (acquire): dev and ino are
 * valid while it is not SHIM_NONE. A slot that is freed and reused between a
 * reader's loads can at worst make it compare a mixed pair, which names no file. */
static struct {
	_Atomic int kind;
	_Atomic unsigned device;
	_Atomic uint64_t dev, ino;
} files[MAX_FILES];

static atomic_uint top;	  /* slots in use lie below; only grows */
static atomic_uint count; /* of slots in use */
static atomic_int owner;  /* process that added them */
static pthread_mutex_t add_lock = PTHREAD_MUTEX_INITIALIZER;

bool shim_files_any(void)
{
	return atomic_load_explicit(&count, memory_order_relaxed) != 0;
}

/* Also true between vfork and exec, where memory is the parent's. */
bool shim_is_forked_child(void)
{
	int pid = atomic_load_explicit(&owner, memory_order_relaxed);

	return pid && pid != (int)getpid();
}

bool shim_device_opened(void)
{
	return atomic_load_explicit(&owner, memory_order_relaxed) != 0;
}

int shim_file_add(enum shim_kind kind, unsigned device, dev_t dev, ino_t ino)
{
	unsigned i;

	pthread_mutex_lock(&add_lock);
	atomic_store_explicit(&owner, (int)getpid(), memory_order_relaxed);
	for (i = 0; i < MAX_FILES; i++)
		if (atomic_load_explicit(&files[i].kind, memory_order_relaxed) == SHIM_NONE)
			break;
	if (i < MAX_FILES) {
		atomic_store_explicit(&files[i].device, device, memory_order_relaxed);
		atomic_store_explicit(&files[i].dev, dev, memory_order_relaxed);
		atomic_store_explicit(&files[i].ino, ino, memory_order_relaxed);
		/* Release: pairs with the acquire load in slot_find. */
		atomic_store_explicit(&files[i].kind, (int)kind, memory_order_release);
		if (i >= atomic_load_explicit(&top, memory_order_relaxed))
			atomic_store_explicit(&top, i + 1, memory_order_release);
		atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&add_lock);
	return i < MAX_FILES ? 0 : EMFILE;
}

static int slot_find(dev_t dev, ino_t ino, enum shim_kind *kind)
{
	/* Acquire: pairs with the release stores in shim_file_add. */
	unsigned n = atomic_load_explicit(&top, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		int k = atomic_load_explicit(&files[i].kind, memory_order_acquire);

		if (k != SHIM_NONE &&
		    atomic_load_explicit(&files[i].ino, memory_order_relaxed) == ino &&
		    atomic_load_explicit(&files[i].dev, memory_order_relaxed) == dev) {
			*kind = (enum shim_kind)k;
			return (int)i;
		}
	}
	return -1;
}

void shim_file_remove(dev_t dev, ino_t ino)
{
	enum shim_kind kind;
	int i;

	pthread_mutex_lock(&add_lock);
	i = slot_find(dev, ino, &kind);
	if (i >= 0) {
		atomic_store_explicit(&files[i].kind, SHIM_NONE, memory_order_relaxed);
		atomic_fetch_sub_explicit(&count, 1, memory_order_relaxed);
	}
	pthread_mutex_unlock(&add_lock);
}

unsigned shim_file_device(dev_t dev, ino_t ino)
{
	enum shim_kind kind;
	int i = slot_find(dev, ino, &kind);

	return i < 0 ? 0 : atomic_load_explicit(&files[i].device, memory_order_relaxed);
}

enum shim_kind shim_file_kind(dev_t dev, ino_t ino)
{
	enum shim_kind kind = SHIM_NONE;

	if (!shim_files_any() || slot_find(dev, ino, &kind) < 0)
		return SHIM_NONE;
	return shim_is_forked_child() ? SHIM_INHERITED : kind;
}
