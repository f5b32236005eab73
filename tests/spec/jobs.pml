/*
 * Jobs, attempts and slots. Three jobs share a limit of one running job; the second waits for the
 * first. Two workers may die or lose their lease at any moment, an operator cancels and redrives,
 * and somebody tries arbitrary updates. Each atomic block is one transaction.
 *
 * relation.pml is generated from the transitions table of the product. TWIN is 0 for the model;
 * other values break one rule each, and the checker must find it.
 */
#include "relation.pml"
#ifndef TWIN
#define TWIN 0
#endif
#define JOBS 3
#define WORKERS 2
#define MAX_ATTEMPTS 2
#define FIRST 0
#define CHILD 1
#define OTHER 2
#define NOBODY 0

byte state[JOBS];
byte attempt[JOBS];            /* number of the last attempt, the fencing token */
byte uncounted[JOBS];          /* attempts that do not count against MAX_ATTEMPTS */
byte holder[JOBS];             /* worker of the running attempt */
bool lease[JOBS];              /* the job has a lease, expired or not */
bool expired[JOBS];
bool abandoned[JOBS];          /* its worker died, or never was one */
bool cancel_requested[JOBS];
byte slot_of;                  /* 1 + the job that holds the only slot of the limit */
byte outcomes[JOBS];           /* outcomes recorded for the last attempt */
bool first_succeeded;
bool is_over;
byte raw_left = 1;
byte cancels_left = 1;
byte redrives_left = 1;
byte crashes_left = 1;
byte expiries_left = 1;
byte releases_left = 1;

#define WAITING(j) (state[j] == QUEUED || state[j] == RETRYING)
#define FINAL(j) (state[j] == SUCCEEDED || state[j] == DEAD || state[j] == CANCELLED)
#define ATTEMPTS_LEFT(j) (attempt[j] - uncounted[j] < MAX_ATTEMPTS)
/* The fence: an outcome counts if its attempt is the running one. */
#if TWIN == 1
#define IS_CURRENT(j, a) (state[j] == RUNNING)
#else
#define IS_CURRENT(j, a) (state[j] == RUNNING && attempt[j] == a)
#endif

/* The foreign key and the trigger: what every change of state passes through. */
inline change(j, to_) {
    assert(LEGAL(state[j], to_));
    if
    :: state[j] == RUNNING ->
        outcomes[j]++;
        assert(outcomes[j] <= 1);
        lease[j] = false; expired[j] = false; abandoned[j] = false; holder[j] = NOBODY;
        slot_of = (slot_of == j + 1 -> 0 : slot_of)
    :: else
    fi;
    if
    :: to_ == RUNNING ->
#if TWIN != 2
        attempt[j]++;
#endif
        outcomes[j] = 0; lease[j] = true;
        assert(attempt[j] - uncounted[j] <= MAX_ATTEMPTS)
    :: to_ == QUEUED && state[j] == RUNNING ->
#if TWIN != 3
        uncounted[j]++
#else
        skip
#endif
    :: (to_ == QUEUED || to_ == BLOCKED) && FINAL(j) ->
        uncounted[j] = attempt[j]; cancel_requested[j] = false
    :: else
    fi;
    if
    :: j == FIRST -> first_succeeded = (to_ == SUCCEEDED)
    :: j == CHILD -> assert(to_ != RUNNING || first_succeeded)
    :: else
    fi;
    state[j] = to_;
    assert((state[j] == RUNNING) == lease[j]);
    assert((state[0] == RUNNING) + (state[1] == RUNNING) + (state[2] == RUNNING) <= 1)
}

/* The unique index on slots. */
inline take_slot(j) {
#if TWIN != 4
    assert(slot_of == 0);
#endif
    slot_of = j + 1
}

#define ALL_FINAL (FINAL(FIRST) && FINAL(CHILD) && FINAL(OTHER))
#if TWIN == 4                  /* a claim does not look at the limit */
#define FREE(j) (WAITING(j) && ATTEMPTS_LEFT(j))
#else
#define FREE(j) (WAITING(j) && ATTEMPTS_LEFT(j) && slot_of == 0)
#endif
#define START(n) atomic { j = n; mine = attempt[n]; holder[n] = me; goto handle }
#define CLAIM(n) atomic { FREE(n) -> take_slot(n); change(n, RUNNING); START(n) }
#define FORGET j = 0; mine = 0

inline end_failed(j) {
    if
    :: ATTEMPTS_LEFT(j) -> change(j, RETRYING)
    :: else -> change(j, DEAD)
    fi
}

proctype worker(byte me) {
    byte j;
    byte mine;                 /* the attempt that this worker runs */
claim:
    do
    :: CLAIM(FIRST)
    :: CLAIM(CHILD)
    :: CLAIM(OTHER)
#if TWIN == 5                  /* looks first, and writes later what it saw */
    :: FREE(FIRST);
       atomic { slot_of = 1; state[FIRST] = QUEUED; change(FIRST, RUNNING) }; START(FIRST)
#endif
    :: is_over -> break
    od;
    goto stop;
handle:
    if
    :: atomic { crashes_left > 0 -> 
        crashes_left--;        /* killed */
        if :: IS_CURRENT(j, mine) -> abandoned[j] = true :: else fi;
        FORGET; goto claim
       }
    :: atomic {
        IS_CURRENT(j, mine) ->
        assert(holder[j] == me && lease[j]);
        if
        :: change(j, SUCCEEDED)
        :: end_failed(j)
        :: cancel_requested[j] -> change(j, CANCELLED)
        :: releases_left > 0 -> releases_left--; change(j, QUEUED)
        fi;
        FORGET; goto claim
       }
    :: atomic { !IS_CURRENT(j, mine) -> FORGET; goto claim }   /* lost: records nothing */
    fi;
stop:
    skip
}

/*
 * All others. The clock ends leases and maintain() recovers their jobs. resolve() follows the end
 * of the first job. An operator cancels and redrives. Somebody updates the state from psql: the
 * trigger checks limits and attempts as for a claim. To release a blocked job by hand is that
 * person's own decision, so it is left out.
 */
#define EXPIRE(j) \
    atomic { lease[j] && !expired[j] && (expiries_left > 0 || abandoned[j]) -> \
        expired[j] = true; if :: !abandoned[j] -> expiries_left-- :: else fi }
#if TWIN == 6                  /* does not look whether the attempt still runs */
#define RECOVER(j) atomic { expired[j] || FINAL(j) -> if :: change(j, RETRYING) fi }
#else
#define RECOVER(j) atomic { state[j] == RUNNING && expired[j] -> end_failed(j) }
#endif
#define CANCEL(j) \
    atomic { cancels_left > 0 && !FINAL(j) -> \
        cancels_left--; \
        if :: state[j] == RUNNING -> cancel_requested[j] = true \
        :: else -> change(j, CANCELLED) fi }
#if TWIN == 8                  /* a success may be taken back */
#define MAY_REDRIVE(j) FINAL(j)
#else
#define MAY_REDRIVE(j) (state[j] == DEAD || state[j] == CANCELLED)
#endif
#define REDRIVE(j) \
    atomic { redrives_left > 0 && MAY_REDRIVE(j) -> \
        redrives_left--; \
        if :: j == CHILD && !first_succeeded -> change(j, BLOCKED) \
        :: else -> change(j, QUEUED) fi }
#if TWIN == 9                  /* no foreign key */
#define UPDATE(j, to_) atomic { raw_left > 0 && state[j] != BLOCKED -> raw_left--; change(j, to_) }
#else
#define UPDATE(j, to_) \
    atomic { raw_left > 0 && LEGAL(state[j], to_) && state[j] != BLOCKED && \
        (j == FIRST || first_succeeded) && (to_ != RETRYING || ATTEMPTS_LEFT(j)) -> \
        raw_left--; change(j, to_) }
#endif
#define UPDATE_RUNNING(j) \
    atomic { raw_left > 0 && FREE(j) -> \
        raw_left--; take_slot(j); change(j, RUNNING); holder[j] = WORKERS + 1; abandoned[j] = true }

proctype others() {
    do
    :: EXPIRE(0) :: EXPIRE(1) :: EXPIRE(2)
    :: RECOVER(0) :: RECOVER(1) :: RECOVER(2)
    :: CANCEL(0) :: CANCEL(1)
    :: REDRIVE(0) :: REDRIVE(1)
    :: UPDATE(0, QUEUED) :: UPDATE(0, RETRYING) :: UPDATE(0, SUCCEEDED) :: UPDATE(0, DEAD)
    :: UPDATE(0, CANCELLED) :: UPDATE_RUNNING(0)
    :: UPDATE(1, QUEUED) :: UPDATE(1, RETRYING) :: UPDATE(1, SUCCEEDED) :: UPDATE(1, DEAD)
    :: UPDATE(1, CANCELLED) :: UPDATE_RUNNING(1)
    :: atomic { state[CHILD] == BLOCKED && state[FIRST] == SUCCEEDED -> change(CHILD, QUEUED) }
#if TWIN == 7                  /* releases the child of a parent that died */
    :: atomic { state[CHILD] == BLOCKED && state[FIRST] == DEAD -> change(CHILD, QUEUED) }
#endif
    :: atomic {
        state[CHILD] == BLOCKED && (state[FIRST] == DEAD || state[FIRST] == CANCELLED) ->
        change(CHILD, CANCELLED)
       }
    :: atomic { ALL_FINAL -> is_over = true; break }
    od
}

init {
    atomic { 
        state[FIRST] = QUEUED; state[CHILD] = BLOCKED; state[OTHER] = QUEUED;
        run worker(1); run worker(2); run others()
    }
}
