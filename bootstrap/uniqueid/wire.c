// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/uniqueid/wire.h"

#include <string.h>

#define ID_MAGIC    0x49726467u /* "gdrI" */
#define ID_VERSION  1
#define FRAME_MAGIC 0x55726467u /* "gdrU" */
#define FRAME_VERSION 1

/* Offsets in the id. */
enum { AT_MAGIC = 0, AT_VERSION = 4, AT_FAMILY = 8, AT_PORT = 10, AT_ADDR = 12, AT_TOKEN = 28,
       AT_ZERO = 44, AT_SUM = GDRI_UID_BYTES - 8 };

static void wire_put(unsigned char *p, uint64_t v, int bytes)
{
	for (int i = 0; i < bytes; i++)
		p[i] = (unsigned char)(v >> (8 * i));
}

static uint64_t wire_get(const unsigned char *p, int bytes)
{
	uint64_t v = 0;

	for (int i = bytes - 1; i >= 0; i--)
		v = v << 8 | p[i];
	return v;
}

void gdri_uid_put32(unsigned char *p, uint32_t v)
{
	wire_put(p, v, 4);
}

uint32_t gdri_uid_get32(const unsigned char *p)
{
	return (uint32_t)wire_get(p, 4);
}

/* FNV-1a: against ids that were cut or changed on their way, not against malice. */
static uint64_t sum_of(const unsigned char *p)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (int i = 0; i < AT_SUM; i++)
		h = (h ^ p[i]) * 0x100000001b3u;
	return h;
}

void gdri_uid_write(unsigned char out[GDRI_UID_BYTES], const struct gdri_uid *id)
{
	memset(out, 0, GDRI_UID_BYTES);
	wire_put(out + AT_MAGIC, ID_MAGIC, 4);
	wire_put(out + AT_VERSION, ID_VERSION, 4);
	wire_put(out + AT_FAMILY, id->family, 2);
	wire_put(out + AT_PORT, id->port, 2);
	memcpy(out + AT_ADDR, id->addr, id->family == 4 ? 4 : 16);
	memcpy(out + AT_TOKEN, id->token, GDRI_UID_TOKEN);
	wire_put(out + AT_SUM, sum_of(out), 8);
}

static bool wire_all_zero(const unsigned char *p, size_t n)
{
	while (n && !*p) {
		p++;
		n--;
	}
	return !n;
}

const char *gdri_uid_parse(const unsigned char in[GDRI_UID_BYTES], struct gdri_uid *id)
{
	memset(id, 0, sizeof(*id));
	if (wire_all_zero(in, GDRI_UID_BYTES))
		return "it was never filled";
	if (wire_get(in + AT_MAGIC, 4) != ID_MAGIC)
		return "gdr_get_uniqueid did not make it";
	if (wire_get(in + AT_VERSION, 4) != ID_VERSION)
		return "another version of gdr made it";
	if (wire_get(in + AT_SUM, 8) != sum_of(in))
		return "it was changed or cut on its way";
	id->family = (uint16_t)wire_get(in + AT_FAMILY, 2);
	id->port = (uint16_t)wire_get(in + AT_PORT, 2);
	memcpy(id->addr, in + AT_ADDR, sizeof(id->addr));
	memcpy(id->token, in + AT_TOKEN, GDRI_UID_TOKEN);
	if ((id->family != 4 && id->family != 6) || !id->port ||
	    (id->family == 4 && !wire_all_zero(id->addr + 4, 12)) ||
	    !wire_all_zero(in + AT_ZERO, AT_SUM - AT_ZERO))
		return "its fields contradict each other";
	return NULL;
}

void gdri_uid_head_write(unsigned char out[GDRI_UID_HEAD], const struct gdri_uid_head *h)
{
	wire_put(out, FRAME_MAGIC, 4);
	wire_put(out + 4, h->type, 2);
	wire_put(out + 6, FRAME_VERSION, 2);
	wire_put(out + 8, h->pe, 4);
	wire_put(out + 12, h->len, 4);
	wire_put(out + 16, h->round, 8);
}

static bool to_hub_fits(const struct gdri_uid_head *h)
{
	switch (h->type) {
	case GDRI_UID_HELLO:
		return h->len == GDRI_UID_TOKEN + 8;
	case GDRI_UID_GATHER:
		return h->len <= GDRI_ALLGATHER_MAX;
	case GDRI_UID_WHO:
	case GDRI_UID_LEAVE:
		return !h->len;
	case GDRI_UID_ABORT:
		return h->len >= 4 && h->len < 4 + GDRI_UID_TEXT;
	default:
		return false;
	}
}

static bool from_hub_fits(const struct gdri_uid_head *h, uint32_t n_pes)
{
	switch (h->type) {
	case GDRI_UID_WELCOME:
		return !h->len && (h->pe == GDRI_UID_NOBODY || h->pe < n_pes);
	case GDRI_UID_REFUSED:
		return h->len == 8;
	case GDRI_UID_RESULT:
		return h->len <= (uint64_t)GDRI_ALLGATHER_MAX * n_pes && h->len % n_pes == 0;
	case GDRI_UID_UNEQUAL:
		return !h->len && h->pe < n_pes;
	case GDRI_UID_GONE:
		return h->len == 4 && h->pe < n_pes;
	case GDRI_UID_MISSING:
		return h->len <= 4 * GDRI_UID_NAMES && h->len % 4 == 0;
	case GDRI_UID_ABORT:
		return h->len >= 4 && h->len < 4 + GDRI_UID_TEXT && h->pe < n_pes;
	default:
		return false;
	}
}

bool gdri_uid_head_parse(const unsigned char in[GDRI_UID_HEAD], bool to_hub, uint32_t n_pes,
			 struct gdri_uid_head *h)
{
	h->type = (uint32_t)wire_get(in + 4, 2);
	h->pe = gdri_uid_get32(in + 8);
	h->len = gdri_uid_get32(in + 12);
	h->round = wire_get(in + 16, 8);
	if (wire_get(in, 4) != FRAME_MAGIC || wire_get(in + 6, 2) != FRAME_VERSION)
		return false;
	return to_hub ? to_hub_fits(h) : from_hub_fits(h, n_pes);
}

bool gdri_uid_same_token(const unsigned char *a, const unsigned char *b)
{
	unsigned int differ = 0;

	for (int i = 0; i < GDRI_UID_TOKEN; i++)
		differ |= (unsigned int)(a[i] ^ b[i]);
	return !differ;
}
