/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of the ring completion queue (GDR_CQ=ring): several pollers
 * consume it without a lock. Checked by ./run for:
 *
 *  - no completion is reported early    (assert in poll)
 *  - none is lost                       (invalid end state: a waiter stays)
 *
 * The queue's posters and the NIC are one process each here: what matters is how
 * `done` grows while pollers stall between any two of their loads. Ring of 4,
 * counters of 3 bits. A poller takes one entry, or two where the second is there,
 * too, by an index read behind them; or, as a short wait does, one entry, by `done` read between
 * turn and consumption. NO_* macros take a safeguard out, as in queue.pml. */

#define N 4
#define M 8
#ifndef START
#define START 4		/* a multiple of N: laps and the owner bit start at 0 */
#endif
#ifndef POSTS
#define POSTS 9		/* more than two laps */
#endif
#define END (START + POSTS)
#define WRAP(x) ((x) & (M - 1))
#define SLOT(x) ((x) & (N - 1))
#define LAP(x) (((x) >> 2) & 1)

byte rsvd = START;
byte done = START;
byte ci = START;	/* next CQE to consume */
byte executed = START;
byte counter[N];	/* CQEs: WQE counter and owner bit in one word */
bit owner[N];

proctype poster()
{
	do
	:: rsvd == END -> break
	/* room check and compare-and-swap of reserve, one block of slack */
	:: atomic { rsvd < END && rsvd + 1 - done <= N - 1 -> rsvd++ }
	od
}

proctype nic()
{
	do
	:: executed == END -> break
	:: d_step {
		executed < rsvd ->
		counter[SLOT(executed)] = WRAP(executed);
		owner[SLOT(executed)] = LAP(executed);
		executed++
	   }
	od
}

proctype poller()
{
	byte c, n, w, r, d;
	bit o;

	do
	:: done == END -> break
	:: done < END -> /* the short wait */
#ifdef NO_DONE_AFTER
		r = done;
#endif
		c = ci;
#ifndef NO_DONE_AFTER
		r = done;
#endif
		atomic { w = counter[SLOT(c)]; o = owner[SLOT(c)] };
		if
		:: o != LAP(c) ->
			(owner[SLOT(ci)] == LAP(ci) || done == END)
		:: else ->
			d = r + 1 + WRAP(w - r);
			atomic {
				if
				:: ci == c -> ci = c + 1
				:: else -> d = 0
				fi
			};
			atomic {
				done = (d > done -> d : done);
				assert(done <= executed)
			}
		fi;
		d_step { c = 0; w = 0; r = 0; d = 0; o = 0 }
	:: done < END ->
		c = ci;
#ifdef NO_RSVD_AFTER
		r = rsvd;
#endif
		atomic { w = counter[SLOT(c)]; o = owner[SLOT(c)] };
		if
		:: o != LAP(c) ->
			/* not written yet: wait for news */
			(owner[SLOT(ci)] == LAP(ci) || done == END)
		:: else ->
			n = 1;
			atomic {
				if
				:: owner[SLOT(c + 1)] == LAP(c + 1) -> w = counter[SLOT(c + 1)]; n = 2
				:: else -> skip
				fi
			};
#ifndef NO_RSVD_AFTER
			r = rsvd;
#endif
			if
#ifndef NO_RECHECK
			:: ci != c -> skip
#endif
			:: else ->
				d = r - WRAP(r - (w + 1));
				atomic {
					if
					:: ci == c -> ci = c + n
					/* somebody else took them: the same look */
#ifdef NO_RECHECK
					:: else -> skip
#else
					:: else -> d = 0
#endif
					fi
				};
				atomic {
					done = (d > done -> d : done);
					/* the claim */
					assert(done <= executed)
				}
			fi
		fi;
		d_step { c = 0; n = 0; w = 0; r = 0; d = 0; o = 0 }
	od
}

init {
	byte k;

	atomic {
		/* as preset: the owner bit of the lap before */
		for (k : 0 .. N - 1) {
			owner[k] = 1 - LAP(START);
			counter[k] = M - 1
		}
		run poster();
		run nic();
		run poller();
		run poller()
	}
}
