/* SPDX-License-Identifier: BSD-3-Clause */
/* Transfers of host threads between any memory and a PE that is reached by queue, on the host device: the NIC knows the
 * heap and registered buffers alone, so the bytes go by way of two buffers of the library, of which one is filled or
 * emptied while the NIC works on the other. */
#ifndef GDRI_STAGING_H
#define GDRI_STAGING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gdri_dev;
struct gdri_state;
struct gdri_staging;

/* Does the NIC find the memory by itself? to_pe: to read it; else to write there. */
bool gdri_staging_is_known(const struct gdri_dev *dev, const void *ptr, size_t len, bool to_pe);

/* Does the way to PE pe need it? to_pe: of a put, whose source it is; else it is where a get puts what it reads. */
bool gdri_staging_needed(const struct gdri_state *st, const void *local, size_t len, int pe, bool to_pe);

/* offset: of the object in the heap. q: see gdri_qp_to. Both return when `local` is the caller's again, also with an
 * error; -GDR_ETIMEOUT within GDR_TIMEOUT of each part; -GDR_EINVAL, which is not logged, where the pages of `local` do
 * not allow it (try_copy.h): parts in front of these have been moved. Any thread; one at a time goes through. */
int gdri_staging_put(struct gdri_state *st, uint64_t offset, const void *src, size_t len, int pe, uint32_t q);
int gdri_staging_get(struct gdri_state *st, void *dst, uint64_t offset, size_t len, int pe, uint32_t q);

/* Once the NIC is closed, which may use it until then. */
void gdri_staging_close(struct gdri_state *st);

#endif
