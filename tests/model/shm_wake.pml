/* SPDX-License-Identifier: BSD-3-Clause */
/* Promela model of the sleeping reader of a ring between two processes
 * (ring_publish, ring_sleep, ring_awake in softhca/wire/wire_ring.c). Each side has a
 * store buffer, as x86 has: a store reaches memory at any later moment, in
 * order, a fence waits for that, an exchange too. Checked by ./run for:
 *
 *  - the reader gets all packets: it does not sleep for ever with one in the
 *    ring                                       (invalid end state)
 *
 * The NO_* macros take a safeguard out. In the program the sleep is bounded:
 * there a lost wake-up costs two milliseconds. */

#ifndef PACKETS
#define PACKETS 3
#endif

byte tail = 0, asleep = 0;	/* memory */
byte wakes = 0;			/* bytes on the socket */

chan wbuf = [PACKETS] of { byte };	/* the writer's stores of tail */
chan rbuf = [4] of { byte };		/* the reader's stores of asleep */

/* What is buffered goes to memory some time. */
active proctype writer_drains()
{
end:	do
	:: atomic { wbuf ? tail }
	od
}

active proctype reader_drains()
{
end:	do
	:: atomic { rbuf ? asleep }
	od
}

active proctype writer()
{
	byte n = 0, was;

	do
	:: n < PACKETS ->
		n = n + 1;
		wbuf ! n;
#ifndef NO_WRITER_FENCE
		empty(wbuf);
#endif
		if
		:: asleep != 0 ->
			atomic {
				empty(wbuf);
				was = asleep;
				asleep = 0
			}
			if
			:: was != 0 -> wakes = wakes + 1
			:: else -> skip
			fi
		:: asleep == 0 -> skip
		fi
	:: n == PACKETS -> break
	od
}

active proctype reader()
{
	byte got = 0, seen;

	do
	:: got == PACKETS -> break
	:: got != PACKETS ->
		seen = tail;
		if
		:: seen != got -> got = seen
		:: else ->
			rbuf ! 1;
#ifndef NO_READER_FENCE
			empty(rbuf);
#endif
#ifndef NO_SECOND_LOOK
			seen = tail;
#endif
			if
			:: seen != got -> skip
			:: else ->
				wakes > 0;		/* sleeps */
				wakes = 0
			fi;
			rbuf ! 0
		fi
	od
}
