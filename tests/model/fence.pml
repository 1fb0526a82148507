/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of the fence bit (gdri_sq_fence_due, gdri_sq_fenced in
 * device/gdr/impl/queue/reserve.h): threads that share a queue each post an atomic, fence,
 * and post a write. One block with the bit serves all fences that it is behind.
 * Checked by ./run for:
 *
 *  - between a thread's atomic and its write behind the fence, the write
 *    included, stands a block with the bit          (assert in poster)
 *
 * The NO_* macros take a safeguard out, as in queue.pml. */

#ifndef POSTERS
#define POSTERS 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define BLOCKS (POSTERS * ROUNDS * 2)

byte rsvd = 0;
byte seq = 0;		/* fences called */
byte fenced = 0;	/* the queue's mark */
bit fence_bit[BLOCKS];

inline mark()
{
	d_step {
		if
		:: due && s > fenced -> fenced = s
		:: else -> skip
		fi
	}
}

/* The index gets the bit with the reservation: what decides was read before. */
inline reserve(at, with)
{
	d_step { at = rsvd; fence_bit[at] = with; rsvd = rsvd + 1 }
}

inline post(at)
{
#ifdef NO_LOOK_FIRST
	reserve(at, 0);
	s = seq;
	due = (fenced != s);
	fence_bit[at] = due;
	mark()
#else
	if /* in any order */
	:: s = seq; due = (fenced != s)
	:: f = fenced; s = seq; due = (f != s)
	fi;
	f = 0;
#ifdef NO_MARK_BEHIND
	mark();
	reserve(at, due)
#else
	reserve(at, due);
	mark()
#endif
#endif
}

proctype poster()
{
	byte i, a, w, s, f, k;
	bit due, found;

	do
	:: i < ROUNDS ->
		post(a);
		atomic { seq = seq + 1 };
		post(w);
		d_step {
			found = 0;
			for (k : a + 1 .. w) {
				found = found || fence_bit[k]
			}
			assert(found);
			k = 0; found = 0; a = 0; w = 0; s = 0; due = 0
		}
		i++
	:: else -> break
	od
}

init {
	byte n;

	atomic {
		for (n : 1 .. POSTERS) {
			run poster()
		}
	}
}
