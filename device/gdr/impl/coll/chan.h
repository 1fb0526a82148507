/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels between the members of a team: each pair has one in each direction, with room for
 * GDRI_CHAN_DEPTH messages in the receiver's slots. A message is data, to a slot or to where it
 * belongs, and behind it one word (gdri_chan.word) that counts the messages sent and, in its other
 * half, those taken of the other direction. So a collective that follows another needs no barrier in
 * between: a slot is written again when its message was taken. All messages of a team to a member
 * take one queue, whichever block sends them, so that a word never overtakes a later one.
 *
 * Everything here is called by all threads of the scope; its first thread waits and tells. Members are
 * named by their numbers in the view of the call (struct gdri_coll), but where it is said. */
#ifndef GDRI_CHAN_H
#define GDRI_CHAN_H

#include <gdr/impl/coll/levels.h>
#include <gdr/impl/api/wait.h>
#include <gdr/impl/path/xfer.h>

/* Which members take part in a step of a call. */
enum gdri_view {
	GDRI_V_TEAM, /* all */
	GDRI_V_NODE, /* those of the own node */
	GDRI_V_LANE, /* number `lane` of each node, but `root` of its own */
};

struct gdri_coll {
	struct gdri_dev *dev;
	struct gdri_team *team;
	int scope;
	uint32_t op; /* for messages */
	int view, n, me; /* who takes part, how many, own number among them */
	int lane, root;
	int arrival; /* a sync alone: gdri_release_to_all */
};

/* Number in the team. */
GDR_DEVICE int gdri_coll_member(const struct gdri_coll *c, int i)
{
	if (c->view == GDRI_V_TEAM)
		return i;
	if (c->view == GDRI_V_NODE)
		return gdri_node_member(c->team, c->team->node, i);
	if (c->root >= 0 && gdri_node_of(c->team, c->root) == i)
		return c->root;
	return gdri_node_member(c->team, i, c->lane);
}

GDR_DEVICE struct gdri_coll gdri_coll_node(const struct gdri_coll *c)
{
	struct gdri_coll v = *c;

	v.view = GDRI_V_NODE;
	v.n = gdri_node_size(c->team, c->team->node);
	v.me = c->team->local;
	return v;
}

GDR_DEVICE struct gdri_coll gdri_coll_lane(const struct gdri_coll *c, int lane, int root)
{
	struct gdri_coll v = *c;

	v.view = GDRI_V_LANE;
	v.n = c->team->nodes;
	v.me = c->team->node;
	v.lane = lane;
	v.root = root;
	return v;
}

/* Its number. */
GDR_DEVICE int gdri_coll_team(const struct gdri_coll *c)
{
	return (int)(c->team - gdri_k(c->dev, teams));
}

/* For a word of the team's member `from`: ends, too, when another one gives up (broken.h). */
GDR_DEVICE void gdri_coll_wait_begin(const struct gdri_coll *c, struct gdri_waiter *w, int from, const void *word)
{
	gdri_wait_begin(w, c->op, gdri_team_pe(c->team, from), gdri_heap_offset(c->dev, word));
	w->team = (int8_t)gdri_coll_team(c);
}

/* Mapped address of the symmetric object, or NULL: by queue. */
GDR_DEVICE uint8_t *gdri_chan_mapped(const struct gdri_coll *c, const void *ptr, int pe)
{
	return gdri_coll_mapped(c->dev, ptr, pe);
}

/* First thread. An 8-byte word of member `to` of the team, behind what the scope wrote before; pairs with the acquire
 * of who waits for it. */
GDR_DEVICE int gdri_chan_signal(const struct gdri_coll *c, int to, uint64_t *word, uint64_t value)
{
	return gdri_coll_tell(c->dev, gdri_team_pe(c->team, to), c->team->queue, word, value);
}

/* First thread. Until the count in the half of the team's member's word that begins at `shift` is at least
 * `least`. */
GDRI_NOINLINE int gdri_chan_wait(const struct gdri_coll *c, int peer, uint32_t shift,
				 uint32_t least)
{
	const uint64_t *word = &c->team->chan[peer].word;
	struct gdri_waiter w;
	int ret;

	gdri_coll_wait_begin(c, &w, peer, word);
	/* acquire: pairs with the release in gdri_chan_tell, or the NIC's order */
	while ((int32_t)((uint32_t)(gdri_ld_acquire_sys_u64(word) >> shift) - least) < 0) {
		ret = gdri_wait_step(c->dev, &w);
		if (ret)
			return ret;
	}
	gdri_wait_end(c->dev, &w);
	return 0;
}

/* Counts of this PE's own: written by the first thread behind a sync of the scope, read by all
 * behind the next one. */
GDR_DEVICE uint32_t gdri_chan_count(const uint32_t *p)
{
	return gdri_ld_relaxed_gpu_u32(p);
}

GDR_DEVICE uint8_t *gdri_chan_slot(const struct gdri_coll *c, int of, uint32_t seq)
{
	uint32_t i = (uint32_t)of * GDRI_CHAN_DEPTH + seq % GDRI_CHAN_DEPTH;

	return c->team->slots + (uint64_t)i * c->team->slot_size;
}

/* First thread. The word for the team's member, behind len bytes from src to dst, which were stored already where the
 * member is mapped. 1: it is not, and o is to be posted. Only then o is written: a fence empties the first-level cache,
 * and who read it behind one would fetch it anew. */
GDRI_NOINLINE int gdri_chan_tell(const struct gdri_coll *c, int member, struct gdri_operation *o, void *dst,
				 const void *src, size_t len)
{
	struct gdri_chan *ch = &c->team->chan[member];
	uint64_t *word = &c->team->chan[c->team->me].word;
	uint32_t got = gdri_chan_count(&ch->got);
	uint64_t value = (uint64_t)got << 32 | gdri_chan_count(&ch->sent);
	int pe = gdri_team_pe(c->team, member);

	gdri_st_relaxed_gpu_u32(&ch->told, got);
	if (!GDRI_QUEUES || gdri_peer_base(c->dev, pe)) {
		/* pairs with the acquire in gdri_chan_wait */
		gdri_p2p_signal((uint64_t *)(void *)gdri_chan_mapped(c, word, pe), value, 0);
		return 0;
	}
	*o = gdri_coll_message(c->dev, GDRI_THREAD, pe, c->team->queue, dst, src, len);
	o->sig = word;
	o->value = value;
	return 1;
}

/* Until a slot of member `to` of the team is free. */
GDR_DEVICE int gdri_chan_room(const struct gdri_coll *c, int to)
{
	int ret = 0;

	if (!gdri_scope_rank(c->scope))
		ret = gdri_chan_wait(c, to, 32,
				     gdri_chan_count(&c->team->chan[to].sent) + 1 - GDRI_CHAN_DEPTH);
	return gdri_scope_bcast(c->scope, ret);
}

/* Where member's bytes go, when there is room for them. */
GDR_DEVICE void *gdri_chan_place(const struct gdri_coll *c, int member, void *dst)
{
	return dst ? dst : gdri_chan_slot(c, c->team->me, gdri_chan_count(&c->team->chan[member].sent) + 1);
}

/* Waits for room, and stores the bytes where the member is mapped. */
GDRI_NOINLINE int gdri_chan_store(const struct gdri_coll *c, int member, void *dst, const void *src, size_t len)
{
	void *at = gdri_chan_place(c, member, dst); /* read before the sync behind which the first thread counts on */
	int ret = gdri_chan_room(c, member);
	uint8_t *p;

	if (ret)
		return ret;
	p = gdri_chan_mapped(c, at, gdri_team_pe(c->team, member));
	if (p && len)
		gdri_p2p_copy_coll(c->scope, p, src, len);
	return 0;
}

/* len bytes to dst of the member (NULL: to the slot, at most slot_size). src belongs to the operation
 * until gdri_coll_flush, or until the member's answer shows that it has them. What posts stands behind what copies, not
 * on its frame. */
GDRI_NOINLINE int gdri_chan_send(const struct gdri_coll *c, int to, void *dst, const void *src,
				 size_t len)
{
	int member = gdri_coll_member(c, to), ret = gdri_chan_store(c, member, dst, src, len);
	uint32_t *sent = &c->team->chan[member].sent;
	struct gdri_operation o;

	if (ret)
		return ret;
	if (!gdri_scope_rank(c->scope)) {
		dst = gdri_chan_place(c, member, dst);
		gdri_st_relaxed_gpu_u32(sent, gdri_chan_count(sent) + 1);
		if (gdri_chan_tell(c, member, &o, dst, src, len))
			ret = gdri_xfer_post_memory(c->dev, &o);
	}
	return gdri_scope_bcast(c->scope, ret);
}

/* Waits for the member's next message. */
GDRI_NOINLINE int gdri_chan_recv(const struct gdri_coll *c, int from)
{
	int member = gdri_coll_member(c, from), ret = 0;

	if (!gdri_scope_rank(c->scope)) {
		ret = gdri_chan_wait(c, member, 0,
				     gdri_chan_count(&c->team->chan[member].got) + 1);
		if (!ret)
			ret = gdri_wait_flush(c->dev, c->op);
	}
	return gdri_scope_bcast(c->scope, ret);
}

/* Where the message is that was waited for. */
GDR_DEVICE uint8_t *gdri_chan_data(const struct gdri_coll *c, int from)
{
	int member = gdri_coll_member(c, from);

	return gdri_chan_slot(c, member, gdri_chan_count(&c->team->chan[member].got) + 1);
}

/* The scope is done with the message. The member is told when half of its room is used up; else the
 * next message to it says so. */
GDRI_NOINLINE int gdri_chan_taken(const struct gdri_coll *c, int from)
{
	int member = gdri_coll_member(c, from), ret = 0;
	struct gdri_chan *ch = &c->team->chan[member];
	struct gdri_operation o;
	uint32_t got;

	gdri_scope_sync(c->scope); /* all have read it: before the release that tells so */
	if (!gdri_scope_rank(c->scope)) {
		got = gdri_chan_count(&ch->got) + 1;
		gdri_st_relaxed_gpu_u32(&ch->got, got);
		if (got - gdri_chan_count(&ch->told) >= GDRI_CHAN_DEPTH / 2 &&
		    gdri_chan_tell(c, member, &o, 0, 0, 0))
			ret = gdri_xfer_post_word(c->dev, &o);
	}
	return gdri_scope_bcast(c->scope, ret);
}

#endif
