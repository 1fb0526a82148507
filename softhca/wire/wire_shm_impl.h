/* SPDX-License-Identifier: BSD-3-Clause */
/* What the wire_shm*.c files share: links between processes. */
#ifndef SOFTHCA_WIRE_SHM_IMPL_H
#define SOFTHCA_WIRE_SHM_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

#include "softhca/wire/wire.h"
#include "softhca/wire/wire_ring.h"

enum { SHM_HELLO = 0x50fca106 };

struct shm_hello {
	uint32_t magic, slot;
	uint64_t at, word; /* peer_memory.c */
};

struct shm_link {
	enum { LINK_FREE, LINK_NEW, LINK_OPEN } state;
	int fd;
	int spare;	     /* a descriptor for the ring that is to come; 0: none */
	uint32_t slot;
	bool out, dirty;
	uint64_t looked_at;  /* wire_shm_connect() */
	uint64_t full_since; /* 0: there was room */
	struct ring ring;
	struct peer_memory memory; /* of the sender */
	struct peer_memory nowhere; /* what cannot be read */
	struct shares *shares;	   /* what of it is mapped here */
	uint32_t told;		   /* messages about it that were read */
	bool gpu_tried;		   /* to map what was shown before dma_on */
	bool hidden;		   /* there will be none any more */
};

extern struct shm_link shm_listener, shm_out[SLOT_COUNT], shm_in[SLOT_COUNT];
extern unsigned shm_n_in; /* links in use lie below */
extern int shm_epoll;	  /* -1: none of this */
extern bool shm_events_due;
extern uint64_t shm_listen_at; /* not before, since the last who asked could not be let in; 0: now */
extern uint64_t shm_own_word; /* by which other processes know this one's memory */

/* ---- wire_shm.c ---- */

socklen_t shm_slot_name(uint32_t slot, struct sockaddr_un *a);
bool shm_same_user(int fd);
int shm_watch(struct shm_link *l);
void shm_close_link(struct shm_link *l);

/* ---- wire_shm_in.c ---- */

void shm_accept(void);
void shm_listen_again(void);
int shm_take_hello(struct shm_link *l);
/* Wake-up bytes, which have done their work, and messages about memory. False: the end. */
bool shm_read_messages(struct shm_link *l);
unsigned shm_receive_from(struct shm_link *l);

/* One message on a Unix socket, and with it one descriptor. Neither call waits. */

/* fd -1: none. False: not sent. */
bool message_send(int sock, const void *bytes, size_t n, int fd);
/* Its length, or -1 with errno; *fd: what was passed with it, the caller's, or -1. */
ssize_t message_receive(int sock, void *bytes, size_t size, int *fd);

#endif
