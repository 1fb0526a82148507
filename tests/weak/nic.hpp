/* SPDX-License-Identifier: BSD-3-Clause */
/* The NIC: reads record and doorbell, the blocks up to there, writes data and completions; and the host that looks at
 * error records. */
#ifndef WEAK_NIC_HPP
#define WEAK_NIC_HPP

struct weak_nic {
	uint64_t pi, ci;
	uint64_t n_cqes;

	weak_nic() : pi(WEAK_START), ci(WEAK_START), n_cqes(0)
	{
	}

	static uint64_t doorbell()
	{
		return gdri_bswap32((uint32_t)obj->word[W_DB].load(rl::mo_acquire, $) << 8);
	}

	/* The record by itself, as behind an earlier doorbell; or since a doorbell came. One that came early says
	 * nothing of the record; the NIC may go by its index, which may be older than what it knows. */
	uint64_t index()
	{
		uint64_t rung = 0, record;
		int bell = rl::rand(2) != 0, early = (scen->flags & GDRI_DEV_EARLY) != 0;

		if (scen->flags & GDRI_DEV_NO_RECORD || (early && bell))
			return doorbell();
		if (bell)
			rung = doorbell();
		record = gdri_bswap32((uint32_t)obj->word[W_DBREC].load(rl::mo_acquire, $));
		if (bell)
			RL_ASSERT((int16_t)(uint16_t)(record - rung) >= 0);
		return record;
	}

	void look()
	{
		uint64_t record = (uint16_t)(index() - pi);

		if (scen->flags & GDRI_DEV_EARLY && (int16_t)(uint16_t)record < 0)
			return;
		RL_ASSERT(record <= (uint64_t)scen->depth);
		pi += record;
	}

	void complete(uint64_t index, uint32_t opcode)
	{
		uint64_t at = scen->ring ? n_cqes % (uint64_t)scen->depth : 0;
		uint64_t owner = scen->ring ? n_cqes / (uint64_t)scen->depth & 1 : 0;

		/* the NIC's order of data and completion */
		obj->word[W_TAIL + at].store(gdri_bswap16((uint16_t)index) | owner << 24 | (uint64_t)opcode << 28,
					     rl::mo_release, $);
		n_cqes++;
	}

	void fail(uint32_t syndrome)
	{
		uint64_t at = scen->ring ? n_cqes % (uint64_t)scen->depth : 0;

		obj->word[W_SYNDROME + at].store(syndrome << 24, rl::mo_relaxed, $);
		complete(ci, GDRI_CQE_REQ_ERR);
	}

	/* The host: as in runtime/diag/errors.c */
	void look_at_records()
	{
		if (obj->word[W_STATE].load(rl::mo_acquire, $) == 2)
			(void)obj->record($).load();
	}

	/* 0: no more */
	int execute()
	{
		struct weak_block *b;
		int i, blocks;

		for (i = 0; i < 2; i++)
			(*weak_block_object(ci, i))($).load();
		b = &truth.block[ci - WEAK_START];
		blocks = b->blocks;
		if (blocks == 2)
			(*weak_block_object(ci + 1, 0))($).load();
		truth.taken = ci + (uint64_t)blocks;
		if (ci >= truth.failed) {
			fail(ci == truth.failed ? 0x13 : GDRI_SYND_FLUSH); /* the peer answers */
			ci += (uint64_t)blocks;
			return scen->flushes;
		}
		for (i = 0; i < blocks; i++)
			obj->data[ci + (uint64_t)i - WEAK_START]($) = 1;
		truth.executed = ci + (uint64_t)blocks;
		if (b->last)
			complete(ci, GDRI_CQE_REQ);
		ci += (uint64_t)blocks;
		return 1;
	}

	void run()
	{
		while (truth.leaving < scen->posters || ci != pi) {
			if (ci == pi)
				look();
			if (scen->fails >= 0)
				look_at_records();
			if (ci != pi && !execute())
				return;
		}
	}
};

#endif
