/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of doorbells of a register (gdri_sq_ring_by): stores become visible to the NIC whenever they like, in any
 * order but for fences. Each doorbell that arrives is an event of its own.
 *
 * EARLY: doorbell, record, F2, doorbell. The NIC goes by the doorbell's index or reads the record, as it likes at each;
 * what it does with the first must not matter. Without F2 (NO_RECORD_FENCE) the second one may find the old record, too.
 * Otherwise there is no record, and the NIC goes by the doorbell's index, older or not: without F6 (NO_BELL_FENCE) the
 * older of two posters' doorbells may come last, and takes the index back.
 *
 * ./run checks that all that was published is executed in the end. */

#define POSTERS 2
#define BELLS	(POSTERS * 2) /* stores to the register that are under way */

byte ready = 0;		/* the turn: blocks published */
byte record = 0;	/* what the NIC sees */
byte late_record[POSTERS], late_bell[BELLS];	/* a store that is not visible yet; 0: none */
byte index = 0, executed = 0;

proctype poster(byte me)
{
	atomic { ready == me }
#ifdef EARLY
	late_bell[2 * me] = me + 1;
	late_record[me] = me + 1;
#ifndef NO_RECORD_FENCE
	late_record[me] == 0 && late_bell[2 * me] == 0; /* F2 */
#endif
#endif
	late_bell[2 * me + 1] = me + 1;
#ifndef EARLY
#ifndef NO_BELL_FENCE
	late_bell[2 * me + 1] == 0; /* F6 */
#endif
#endif
	ready = me + 1
}

inline rung(i)
{
	atomic {
		late_bell[i] ->
#ifdef EARLY
		if
		:: index < late_bell[i] -> index = late_bell[i]
		:: index >= late_bell[i]
		:: index < record -> index = record
		:: index >= record
		fi;
#else
		index = late_bell[i];
#endif
		late_bell[i] = 0
	}
}

inline stored(i)
{
	atomic { late_record[i] -> record = (late_record[i] > record -> late_record[i] : record); late_record[i] = 0 }
}

proctype nic()
{
end:
	do
	:: rung(0)
	:: rung(1)
	:: rung(2)
	:: rung(3)
	:: stored(0)
	:: stored(1)
	:: atomic { executed < index -> executed = index }
	od
}

/* Ends only when the last block was executed. */
proctype waiter()
{
	executed == POSTERS
}

init {
	atomic {
		run poster(0);
		run poster(1);
		run nic();
		run waiter()
	}
}
