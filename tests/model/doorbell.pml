/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of doorbells that a host thread carries over: posters store to a word of memory, each
 * store visible late, and hand the turn on (gdri_sq_pass_on); the host sees the word as it is and rings
 * what it finds. The device here trusts the index of the doorbell alone, not the record.
 *
 * ./run checks that all that was published is executed in the end; without the fence between a doorbell
 * and the hand-over (F5) the word may keep an older index, and it is not. */

#ifndef POSTERS
#define POSTERS 3
#endif

byte ready = 0;	/* the turn: blocks published */
byte word = 0;	/* what the host sees */
byte late[POSTERS];	/* a store of each poster that is not visible yet; 0: none */
byte rung = 0, executed = 0, stored = 0;

proctype poster(byte me)
{
	byte base;

	/* blocks are reserved in any order, published in that of their numbers */
	atomic { ready == me -> base = ready };
	late[me] = base + 1;
#ifndef NO_BELL_FENCE
	late[me] == 0; /* F5 */
#endif
	ready = base + 1
}

/* A store becomes visible whenever it likes. */
proctype memory()
{
	byte i;

	do
	:: stored < POSTERS ->
		atomic {
			if
			:: late[0] -> i = 0
#if POSTERS > 1
			:: late[1] -> i = 1
#endif
#if POSTERS > 2
			:: late[2] -> i = 2
#endif
			fi;
			word = late[i]; late[i] = 0; stored++
		}
	:: else -> break
	od
}

proctype host()
{
	do
	:: atomic { word != rung -> rung = word }
	:: executed == POSTERS -> break
	od
}

proctype nic()
{
	do
	:: atomic { executed < rung -> executed = rung }
	:: executed == POSTERS -> break
	od
}

init {
	byte k;

	atomic {
		for (k : 0 .. POSTERS - 1) {
			run poster(k)
		}
		run memory();
		run host();
		run nic()
	}
}
