/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of what each queue pair has, close together and in large pages: among the program's own a
 * thousand of them would lie in as many pages, and the way to each costs more than what is done there. */
#ifndef SOFTHCA_ID_TABLE_H
#define SOFTHCA_ID_TABLE_H

#include <stddef.h>

/* Zeroed, at a cache line; NULL: no memory. hca_lock held, as for the other. */
void *id_table_get(size_t size);
void id_table_put(void *p, size_t size); /* size: as p was got with; p may be NULL */

#endif
