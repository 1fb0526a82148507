/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of the loop of compare-and-swap by which atomics are done that no NIC has (gdri_amo_loop in
 * device/gdr/impl/api/amo_cas.h): threads, each with an operand of its own, add to a word, or (MAXIMUM) leave the greater
 * of both there. Reads and compare-and-swaps of the word are atomic to each other. Checked by ./run for:
 *
 *  - the word is what the operations that took place make of it, one after the other	(assertion word==want)
 *  - each addition brings another value						(assertion !brought)
 *
 * GIVES_UP: a thread may end an operation behind a try that failed, as at the limit of every wait; then it has not taken
 * place. The NO_* macros take a safeguard out. */

#ifndef THREADS
#define THREADS 3
#endif
#ifndef TIMES
#define TIMES 2
#endif

#define OPERAND (me + 1)
#ifdef MAXIMUM
#define COMBINE(a, b) ((a) > (b) -> (a) : (b))
#else
#define COMBINE(a, b) ((a) + (b))
#endif
#ifdef NO_NEW_LOOK /* the first one is the base of all tries */
#define BASE first
#else
#define BASE seen
#endif
#ifdef NO_COMPARE /* a store */
#define UNCHANGED true
#else
#define UNCHANGED (word == seen)
#endif

byte word = 0, want = 0, ended = 0;
bool brought[32];

proctype thread(byte me)
{
	byte seen, first, times = 0;
	bool mine;

	do
	:: times == TIMES -> break
	:: times < TIMES ->
		times = times + 1;
		atomic { seen = word; first = seen }
		do
		:: COMBINE(seen, OPERAND) == seen -> break /* the look was the operation: want has no less */
		:: COMBINE(seen, OPERAND) != seen ->
			atomic {
				mine = UNCHANGED;
				if
				:: mine ->
					word = COMBINE(BASE, OPERAND);
					want = COMBINE(want, OPERAND);
#ifndef MAXIMUM
					assert(!brought[seen]);
					brought[seen] = true
#endif
				:: else -> seen = word
				fi
			}
			if
			:: mine -> break
			:: !mine -> skip
#ifdef GIVES_UP
			:: !mine -> break
#endif
			fi
		od
	od;
	ended = ended + 1
}

init
{
	byte i = 0;

	atomic {
		do
		:: i < THREADS -> run thread(i); i = i + 1
		:: i == THREADS -> break
		od
	}
	ended == THREADS;
	assert(word == want)
}
