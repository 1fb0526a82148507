/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of a barrier of all PEs, or of a team's, that one of them gives up (device/gdr/impl/api/barrier.h,
 * coll/team.h, diag/broken.h): dissemination, or (FLAT) one round. LOOK_OWN: a collective of a team that moves data; who
 * enters looks at what it found itself, in a wait, not at what it was told. PEs come when they come. At most one wait
 * ends at its limit, any one, at any time; what its PE tells of that arrives in any order, at any time. QUEUE: words
 * go by queues as well, and arrive some time; what is told arrives behind the words of its queue.
 * Checked by ./run for:
 *
 *  - who succeeds in a call knows that all have come to it
 *                                             (assertion violated come[i]>=k)
 *  - no PE succeeds in a call behind one that it, or another PE, gave up
 *                                             (assertion violated k<=given)
 *  - nobody else has to wait for its own limit
 *                                             (invalid end state)
 *  - nobody gives up in front of a word that was there: of those there before the reason was told, or told before it by
 *    the PE that told the reason              (assertion violated k>here, k>was[(..)])
 *  - who is told of a call that was given up gives up that one, or the one in front of it (EARLY): somebody who has come,
 *    as all have, has not told it yet        (assertion violated (k+EARLY)>=given)
 *
 * The NO_* macros take a safeguard out. */

#ifndef PES
#define PES 3
#endif
#ifndef CALLS
#define CALLS 3
#endif

#ifndef EARLY
#define EARLY 1 /* calls */
#endif

#ifdef FLAT
#define ROUNDS PES
#else
#define ROUNDS 2 /* of 3 or 4 PEs */
#endif
#define WORD(pe, round) word[(pe) * ROUNDS + (round)]
#ifdef QUEUE
#define SENT(pe, round) sent[(pe) * ROUNDS + (round)]
#else
#define SENT WORD
#endif

byte word[PES * ROUNDS];	/* gdri_ctl.barrier of each PE; FLAT: gdri_ctl.flat */
#ifdef QUEUE
byte sent[PES * ROUNDS];	/* on their way, or there */
#endif
byte come[PES];			/* the call that a PE has come to */
bit told[PES], broken[PES];	/* gdri_ctl.broken: on its way, there */
byte given = 255;		/* the call that was given up */
byte giver;			/* by whom */
byte was[PES * ROUNDS];		/* the words at that time, on their way if giver sent them */

#ifdef QUEUE
#define ON_ITS_WAY(pe, round) (WORD(pe, round) < SENT(pe, round))
#define FROM_GIVER(pe, round) (((pe) + PES - (1 << (round))) % PES == giver)
#else
#define ON_ITS_WAY(pe, round) false
#define FROM_GIVER(pe, round) false
#endif
#ifdef NO_STRONG /* a WRITE does not wait for words that are atomics, which wait for WRITEs */
#define BEHIND(pe, round) true
#else
#define BEHIND(pe, round) !(FROM_GIVER(pe, round) && ON_ITS_WAY(pe, round))
#endif

/* What was told arrives some time. */
active [PES] proctype arrives()
{
end:	do
	:: atomic { told[_pid] && !broken[_pid] && BEHIND(_pid, 0) && BEHIND(_pid, 1) -> broken[_pid] = 1 }
	:: atomic { ON_ITS_WAY(_pid, 0) -> WORD(_pid, 0) = SENT(_pid, 0) }
	:: atomic { ON_ITS_WAY(_pid, 1) -> WORD(_pid, 1) = SENT(_pid, 1) }
	od
}

/* The own word at once, the others' one after the other. */
inline give_up()
{
	broken[me] = 1;
#ifndef NO_TELL
	i = 0;
	do
	:: i < PES -> told[i] = 1; i = i + 1
	:: else -> break
	od
#endif
}

/* The look behind the reason: whether the wait fails. */
inline last_look(at)
{
	here = WORD(me, at);
#ifdef NO_LAST_LOOK
	failed = 1;
#else
	failed = here < k;
#endif
	if
	:: failed -> knows = 1
	:: else -> skip
	fi
}

/* Until the word of the round is there. */
inline hear(at)
{
	if
	:: WORD(me, at) >= k -> skip
#ifndef NO_LOOK_WAITING
	:: broken[me] ->
		atomic { last_look(at); assert(!failed || k > was[me * ROUNDS + at]);
			 assert(!failed || k + EARLY >= given) }
#endif
	:: atomic { given == 255 ->
			last_look(at);
			assert(!failed || k > here);
			if
			:: failed ->
				given = k;
				giver = me;
				i = 0;
				do
				:: i < PES * ROUNDS ->
					was[i] = (FROM_GIVER(i / ROUNDS, i % ROUNDS) -> SENT(0, i) : word[i]);
					i = i + 1
				:: else -> break
				od
			:: else -> skip
			fi
		};
		if
		:: failed -> give_up()
		:: else -> skip
		fi
	fi;
	i = 0;
	here = 0
}

proctype pe(byte me)
{
	byte k = 0, round, step, i, here;
	bit failed, knows = 0;

	do
	:: k == CALLS -> break
	:: k < CALLS ->
		atomic { k = k + 1; come[me] = k; failed = 0 }
#ifndef NO_LOOK_ENTERING
		if
#ifdef LOOK_OWN
		:: knows -> failed = 1
#else
		:: broken[me] -> failed = 1
#endif
		:: else -> skip
		fi;
#endif
		round = 0;
		step = 1;
#ifdef FLAT
		do
		:: !failed && round < PES ->
			WORD(round, me) = k;
			round = round + 1
		:: else -> break
		od;
		round = 0;
#endif
		do
#ifdef FLAT
		:: !failed && round < PES ->
			hear(round);
			round = round + 1
#else
#ifdef NO_SILENCE
		:: step < PES ->
#else
		:: !failed && step < PES ->
#endif
			SENT((me + step) % PES, round) = k;
			if
			:: !failed -> hear(round)
			:: else -> skip
			fi;
			round = round + 1;
			step = step * 2
#endif
		:: else -> break
		od;
		if
		:: !failed ->
			atomic {
				assert(k <= given);
				i = 0;
				do
				:: i < PES -> assert(come[i] >= k); i = i + 1
				:: else -> break
				od
			}
		:: else -> skip
		fi
	od
}

init {
	byte n = 0;

	atomic {
		do
		:: n < PES -> run pe(n); n = n + 1
		:: else -> break
		od
	}
}
