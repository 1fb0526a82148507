/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of a send queue: reserve.h, publish.h and complete.h of
 * device/gdr/impl as posters, the NIC as a process, memory that makes stores
 * visible late. Checked by ./run for:
 *
 *  - no WQE is fetched before it is written            (assert in nic)
 *  - no doorbell is lost, no deadlock on a full ring   (invalid end state)
 *  - no completion is reported early                   (assert in poll)
 *  - no block is given away that is not complete       (assert behind reserve)
 *  - who is handed on for by another one goes on, and nobody
 *    whose blocks are not all written is handed on for
 *  - an error reaches every waiter                     (invalid end state)
 *  - who waits for room gets it, also beside others who give up
 *    waiting (GIVES_UP), or never look again (LATE)    (invalid end state)
 *  - nobody who waits is passed more than twice by each other
 *    poster, and where there is room to spare (SPARE) once a
 *    turn (FAIR)                                       (assert behind reserve)
 *  - a doorbell at least every BATCH blocks, however
 *    many reserve meanwhile                            (assert in publish)
 *
 * Each NO_* macro takes one safeguard out; ./run shows that the checker then
 * finds the fault. Ring of 4 blocks, counters of 3 bits: the proportions of
 * 32768 blocks and 16 bits, with indexes that start so that both wrap; a window of 2
 * marks, or 4. GROUPS: two blocks are two WQEs of a group, which may mark, in place
 * of one WQE that may not.
 *
 * Indexes here are true ones (the 64-bit indexes of the code); what the NIC
 * reports and what the doorbell carries is taken modulo M. */

#ifndef POSTERS
#define POSTERS 2
#endif
#ifndef POSTS
#define POSTS 3
#endif
#define N 4		/* blocks of the ring */
#ifndef BATCH
#define BATCH 2		/* GDRI_BATCH */
#endif
#ifndef W
#define W 2		/* GDRI_WINDOW */
#endif
#define NONE -100	/* GDRI_ROOM_NONE */
#define M 8		/* range of the counter in CQE and doorbell */
#ifndef START
#define START 6		/* first index: wraps N at 8 and M at 8 and 16 */
#endif

#define WRAP(x) ((x) & (M - 1))
#define SLOT(x) ((x) & (N - 1))

/* What wakes a poller. One that does not look at the CQE's opcode takes an error
 * for "not yet". */
#ifdef NO_ERROR_LATCH
#define NEWS (!cqe_err && WRAP(done) != WRAP(cqe + 1))
#else
#define NEWS (WRAP(done) != WRAP(cqe + 1) || cqe_err)
#endif

/* Who publishes up to `end` rings: the last reserver, and whoever crosses a batch boundary. r: rsvd, as it was
 * read before those up to `end` were seen. */
#ifdef NO_LAST_RINGS
#define LAST(end) (0)
#elif defined(NO_OLD_RSVD)
#define LAST(end) (r == (end))
#else
#define LAST(end) (r <= (end))
#endif
#ifndef NO_BATCH
#define CROSSES(base, end) ((base) / BATCH != (end) / BATCH)
#else
#define CROSSES(base, end) (0)
#endif

/* Who may mark: whose bit is no other block's. */
#define BIT(i) ((i) & (W - 1))
#define IN_WINDOW (base + n - ready <= W)
#define MARK_OF(i, end) ((1 << BIT(i)) | (1 << BIT((end) - 1))) /* one block, or two */
#ifdef GROUPS
#define MAY_MARK 1
#define LAST_WRITTEN (base + n - 1)
#define LAST2 0
#define LAST_CQE(ci, nb) WRAP((ci) + (nb) - 1)
#else
#define MAY_MARK (n == 1)
#define LAST_WRITTEN base
#define LAST2 (n == 2)
#define LAST_CQE(ci, nb) WRAP(ci)
#endif

/* Nobody takes room in passing while others wait; who comes to wait goes behind those whose turn it is. */
#ifndef NO_WAITERS_FIRST
#define IN_PASSING !waits
#else
#define IN_PASSING 1
#endif
#ifndef NO_TURNS
#define ENTERS !turn
#else
#define ENTERS turn
#endif
#define MY_TURN (side == turn)
/* All others are through, or do not use their turn: room for any group is there, and who does not look again is not
 * waited for, after a time. */
#ifdef LATE
#define ENDED (!gate[turn] || (room >= N / 2 && LONG))
#else
#define ENDED (!gate[turn])
#endif
#ifndef NO_PASSING_OVER
#define LONG 1
#else
#define LONG 0
#endif
/* gdri_sq_take_spare: out of turn, what is left over once more. */
#ifdef SPARE
#define MAY_SPEND (room >= n + N / 2 && (!spent || UNLIMITED))
#else
#define MAY_SPEND 0
#endif
#ifndef NO_LIMIT_OUT_OF_TURN
#define UNLIMITED 0
#else
#define UNLIMITED 1
#endif
#define MAY_TAKE (out || (in -> MY_TURN : IN_PASSING))

/* Of each poster: whether it waits, and how often others got room as of right meanwhile. */
#ifdef FAIR
#ifdef SPARE
#define ALL_OTHERS_TWICE (2 * (POSTERS - 1) + 2)
#else
#define ALL_OTHERS_TWICE (2 * (POSTERS - 1))
#endif
bit waiting[POSTERS];
byte passed[POSTERS];
#define WAITS(v) waiting[id] = v; passed[id] = 0
#define PASSES								\
	k = 0;								\
	do								\
	:: k < POSTERS && k != id && waiting[k] ->			\
		passed[k]++; assert(passed[k] <= ALL_OTHERS_TWICE); k++	\
	:: k < POSTERS && (k == id || !waiting[k]) -> k++		\
	:: k == POSTERS -> break					\
	od;								\
	k = 0
#else
#define WAITS(v) skip
#define PASSES skip
#endif

byte rsvd = START;
byte ready = START;
bit last2 = 0;		/* kept in the same word as ready */
byte done = START;
byte marks = 0;		/* written, and waiting for who publishes */
byte limit = START;	/* done + N - 1, as it was when `room` was last raised */
short room = 0;		/* blocks below limit that nobody has taken */
byte waits = 0;		/* how many wait for them: kept in the same word as room */
byte gate[2];		/* of these, whose turn it is, and who came later */
bit turn = 0;		/* which is which */
bit spent = 0;		/* somebody took room out of turn: kept in the word of gate and turn */
bit err = 0;

/* Memory of the ring. written[s]: index whose WQE the poster stored in block s;
 * visible[s]: what the NIC would read there. A store becomes visible at any
 * time, at the latest when a fence of a thread that is ordered after it ends. */
byte written[N];
byte visible[N];
byte blocks[N];		/* length of that WQE, or group with one completion, 1 or 2 blocks */

byte dbrec = WRAP(START);	/* doorbell record, in order behind the fence */
byte db = WRAP(START);		/* doorbell register: the last value stored */
bit db_new = 0;

byte cqe = WRAP(START - 1);	/* one-entry CQ: counter of the last completion */
bit cqe_err = 0;
byte executed = START;		/* true indexes, for the assertions only */
byte rung = START;
byte finished = 0;

/* F1: the poster's own WQE and, through the turn, those of all posters that
 * handed over without ringing. */
inline fence(upto)
{
#ifndef NO_FENCE
	d_step {
		i = done;
		do
		:: i < upto -> visible[SLOT(i)] = written[SLOT(i)]; i++
		:: else -> break
		od;
		i = 0
	}
#else
	skip
#endif
}

/* One reading of the CQ; sets `d` to a lower bound of what is complete. */
inline poll()
{
#ifndef NO_RSVD_FIRST
	r = rsvd;
	atomic { c = cqe; e = cqe_err }
#else
	atomic { c = cqe; e = cqe_err };
	r = rsvd;
#endif
	d_step {
#ifndef NO_ERROR_LATCH
		if
		:: e -> err = 1
		:: else -> skip
		fi;
#endif
		if
		:: !e ->
			/* compared as signed numbers in the code: below 0 is nothing new */
			d = (r < WRAP(r - (c + 1)) -> 0 : r - WRAP(r - (c + 1)));
#ifdef NO_PLUS_ONE
			d = d + 1;
#endif
			if
			:: d > done -> done = d
			:: else -> skip
			fi
		:: else -> skip
		fi;
		/* the claim: whatever is reported complete has been executed */
		assert(done <= executed);
		c = 0; r = 0; d = 0
	};
	/* the latch: err, then room */
	if
	:: e -> room = NONE; e = 0
	:: else -> skip
	fi
}

/* gdri_sq_look, after its poll: raises limit from `done`, then puts in what lies between. */
inline look()
{
	l = done + N - 1;
#ifdef NO_ROOM_LEFT
	l = l + 2;
#endif
	d_step {
		if
		:: l > limit -> r = l - limit; limit = l
		:: else -> r = 0
		fi
	};
	d_step { room = room + r; r = 0 }
}

/* gdri_gate_enter; and leave, in one step for who looks at gate alone */
inline enter()
{
	side = ENTERS;
	gate[side] = gate[side] + 1;
	d_step { waits = waits + 1; in = 1; WAITS(1) }
}

inline leave()
{
#ifndef NO_LEAVE
	gate[side] = gate[side] - 1;
#endif
	d_step { waits = waits - 1; in = 0; side = 0; WAITS(0) }
}

proctype poster(byte id)
{
	byte base, n, posts, i, c, r, d, l;
	byte end, m;
	bit e, got, failed, gives_up, first, marked, looks, in, out, side;
#ifdef FAIR
	byte k;
#endif

	posts = 0;
	do
	:: posts < POSTS && !failed ->
		if
		:: n = 1
		:: n = 2
		fi;
		/* reserve */
#ifndef NO_CHECK_BEFORE_RESERVE
		got = 0;
		do
		:: got || gives_up -> break
		:: !got && !gives_up && err -> failed = 1; break
		:: !got && !gives_up && !err ->
			if
			:: atomic { in && !MY_TURN && ENDED -> turn = side; spent = 0 } /* gdri_gate_turn */
			:: atomic { MAY_SPEND -> spent = 1; out = 1 }
			:: skip
			fi;
			/* gdri_sq_take; who waits does not before its turn */
			d_step { e = (room >= n && MAY_TAKE); room = room - n; out = 0 };
			if
			:: !e ->
#ifndef NO_GIVE_BACK
				room = room + n;
#endif
				poll();
				if
				:: err -> skip
				:: else ->
					look();
					l = 0;
					if
					:: !in -> enter()
					:: in -> skip
#ifdef GIVES_UP
					:: in -> gives_up = 1
#endif
#ifdef LATE
					:: atomic { in && !finished -> finished++; goto late }
#endif
					fi;
					/* full: wait until something can have changed */
					(gives_up || db_new || NEWS || err || (room >= n && MY_TURN) ||
					 (!MY_TURN && (ENDED || MAY_SPEND)) || done + N - 1 > limit)
				fi
			:: else ->
				atomic {
					e = 0;
					base = rsvd; rsvd = base + n; got = 1;
					PASSES;
					WAITS(0);
					if
					:: ready == base -> first = 1 /* rings without another look */
					:: skip /* did not look before */
					fi;
					/* the claim behind all arithmetic of indexes */
					assert(cqe_err || rsvd - done <= N - 1)
				}
			fi
		od;
		if
#ifdef NO_GIVER_LEAVES
		:: in && (gives_up || failed) -> in = 0
		:: in && !gives_up && !failed -> leave()
#else
		:: in -> leave()
#endif
		:: else -> skip
		fi;
#else
		atomic { base = rsvd; rsvd = base + n };
		do
		:: base + n - done <= N - 1 -> break
		:: err -> failed = 1; break
		:: else ->
			(db_new || NEWS || err ||
			 base + n - done <= N - 1);
			poll()
		od;
#endif
		if
		:: failed || gives_up -> break
		:: else -> skip
		fi;
		/* write: into the store buffer */
		skip;
		d_step {
			assert(cqe_err || base + n - executed <= N);
			written[SLOT(base)] = base;
			written[SLOT(base + n - 1)] = LAST_WRITTEN;
			blocks[SLOT(base)] = n
		};
		/* publish: gdri_sq_publish_marked, or others */
		if
		:: first /* has the turn */
		:: atomic { !first && MAY_MARK -> looks = 1 };
#ifdef NO_MARKS_BEHIND
			m = marks;
#endif
			if
			:: ready >= base
			:: atomic { ready < base && IN_WINDOW -> marked = 1 };
				/* by that look, which is old by now */
#ifndef NO_WHOLE_MARK
				marks = marks | MARK_OF(base, base + n);
#else
				marks = marks | (1 << BIT(base));
				marks = marks | (1 << BIT(base + n - 1));
#endif
				ready >= base
			fi
		:: !first -> r = rsvd; /* gdri_sq_publish_unmarked */
			ready >= base
		fi;
		if
		:: ready > base -> assert(marked)
		:: else ->
			end = base + n;
			if
			:: looks || r <= end -> r = rsvd
			:: else -> skip /* it stays so */
			fi;
			if
			:: looks ->
				/* the marks, in one look behind the one that saw the turn */
				d_step {
#ifndef NO_MARKS_BEHIND
					m = marks;
#endif
					do
					:: end - base < W && (m & (1 << BIT(end))) -> end++
					:: else -> break
					od;
					m = 0
				};
				/* clears them */
#ifndef NO_CLEARING
				d_step {
					i = (marked -> base : base + n);
					do
					:: i < end -> marks = marks & ~(1 << BIT(i)); i++
					:: else -> break
					od;
					i = 0
				}
#endif
			:: else -> skip
			fi;
			if
			:: first || LAST(end) || CROSSES(base, end) ->
				first = 0;
				fence(end);
				dbrec = WRAP(end);
				d_step { db = WRAP(end); db_new = 1; rung = end };
				d_step { ready = end; last2 = LAST2 }
			:: else ->
				d_step {
					/* the claim: what the NIC does not know of is less than a batch */
					assert(end - rung < BATCH);
					ready = end; last2 = LAST2
				}
			fi;
			d_step { r = 0; end = 0 }
		fi;
		d_step { marked = 0; looks = 0; r = 0 };
		posts++
	:: else -> break
	od;
	skip;
	n = 0;
	/* quiet: one word tells the index and whether its last WQE has two blocks */
	d_step { base = ready - last2 };
#ifdef NO_LAST2
	base = ready;
#endif
	do
	:: done >= base -> break
#ifndef NO_ERROR_CHECK
	:: done < base && err -> failed = 1; break
#endif
	:: else ->
		(NEWS || done >= base || err);
#ifdef NO_ERROR_CHECK
		/* a waiter that ignores errors: stuck once the queue has failed */
		(!cqe_err);
#endif
		poll()
	od;
	skip;
	d_step { base = 0; i = 0; finished++ }
late:	skip
}

proctype nic()
{
	byte pi = START, ci = START, nb;
	bit failing;

	do
	:: db_new || WRAP(dbrec) != WRAP(pi) ->
		/* producer index: the farther of doorbell and record */
		d_step {
			db_new = 0;
			if
			:: WRAP(dbrec - pi) >= WRAP(db - pi) && WRAP(dbrec - pi) <= N ->
				pi = pi + WRAP(dbrec - pi)
			:: WRAP(db - pi) > WRAP(dbrec - pi) && WRAP(db - pi) <= N ->
				pi = pi + WRAP(db - pi)
			:: else -> skip
			fi
		}
	:: ci != pi ->
		/* fetch */
		d_step {
			assert(visible[SLOT(ci)] == ci);
			nb = blocks[SLOT(ci)];
#ifdef GROUPS
			assert(visible[SLOT(ci + nb - 1)] == ci + nb - 1);
#endif
		};
#ifdef ERRORS
		if
		:: !failing -> failing = 1
		:: skip
		fi;
#endif
		if
		:: failing ->
			/* error CQE for this one, flush CQEs for the rest: never success again */
			d_step { cqe = WRAP(ci); cqe_err = 1; ci = ci + nb }
		:: else ->
			d_step { cqe = LAST_CQE(ci, nb); ci = ci + nb; executed = ci }
		fi;
		nb = 0
	:: finished == POSTERS && ci == pi && !db_new -> break
	od
}

/* A store becomes visible whenever it likes. */
proctype memory()
{
end:	do
	:: d_step { visible[0] != written[0] -> visible[0] = written[0] }
	:: d_step { visible[1] != written[1] -> visible[1] = written[1] }
	:: d_step { visible[2] != written[2] -> visible[2] = written[2] }
	:: d_step { visible[3] != written[3] -> visible[3] = written[3] }
	:: finished == POSTERS -> break
	od
}

init {
	byte k;

	atomic {
		for (k : 0 .. N - 1) {
			written[k] = 255;
			visible[k] = 255
		}
		for (k : 1 .. POSTERS) {
			run poster(k - 1)
		}
		run nic();
		run memory()
	}
}
