/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of a wait's record (gdri_wait_publish, gdri_wait_clear) and of who looks at it twice (absent_pe in
 * runtime/diag/absent.c): waits take the record one after the other, each store visible late and in any order but for
 * fences and releases. The next owner may see the end of a wait before who looks does, and its own store then stands in
 * that one's place: C11 and PTX promise no more, arm64 does. The loads of who looks have the order that its acquires
 * and its fence make, and no more.
 *
 * ./run checks that what it takes for one wait is one: all fields are that wait's. */

#ifndef WAITS
#define WAITS 3
#endif

#define IDLE 0
#define FILLING 1
#define WAITING 2

#define STATE 0
#define SINCE 1
#define PEER 2
#define ADDR 3
#define WORDS 4

byte word[WORDS];	/* what others see; a field is the number of its wait */
byte late[WORDS];	/* a store that is not visible yet */
bool is_late[WORDS];
byte ended = 0;

#define STORE(w, v) atomic { late[w] = v; is_late[w] = true }
#define FENCE atomic { !is_late[STATE] && !is_late[SINCE] && !is_late[PEER] && !is_late[ADDR] }

proctype waits()
{
	byte k;

	for (k : 1 .. WAITS) {
		(is_late[STATE] -> late[STATE] : word[STATE]) == IDLE; /* compare-and-swap: nobody has the record */
		STORE(STATE, FILLING);
#ifndef NO_FENCE_FILLING
		FENCE;
#endif
		STORE(PEER, k);
		STORE(SINCE, k);
		STORE(ADDR, k);
		FENCE; /* release */
		STORE(STATE, WAITING);
		FENCE; /* release */
		STORE(STATE, IDLE)
	}
	FENCE;
	ended = 1
}

proctype memory()
{
	do
	:: atomic { is_late[STATE] -> word[STATE] = late[STATE]; is_late[STATE] = false }
	:: atomic { is_late[SINCE] -> word[SINCE] = late[SINCE]; is_late[SINCE] = false }
	:: atomic { is_late[PEER] -> word[PEER] = late[PEER]; is_late[PEER] = false }
	:: atomic { is_late[ADDR] -> word[ADDR] = late[ADDR]; is_late[ADDR] = false }
	:: ended -> break
	od
}

proctype looks()
{
	byte since, again, peer, addr, first, last;

#ifndef NO_SINCE_FIRST
	since = word[SINCE]; /* acquire */
#endif
	first = word[STATE]; /* acquire */
	if /* relaxed, both */
	:: peer = word[PEER]; addr = word[ADDR]
	:: addr = word[ADDR]; peer = word[PEER]
	fi;
#ifdef NO_SINCE_FIRST
	since = word[SINCE];
#endif
	/* acquire fence */
#ifndef NO_STATE_FIRST
	last = word[STATE]; /* acquire */
	again = word[SINCE];
#else
	again = word[SINCE];
	last = word[STATE];
#endif
	if
	:: first == WAITING && last == WAITING && since == again ->
		assert(peer == since && addr == since)
	:: else
	fi
}

init {
	atomic {
		run waits();
		run memory();
		run looks()
	}
}
