/*
 * Wake-ups (docs/protocol.md). A producer locks P, stores its job, and looks whether somebody
 * waits (W): then its commit notifies. A worker that finds nothing locks W, and sleeps only if
 * no producer holds P and a last claim finds nothing. Nobody polls here, so a lost wake-up is a
 * worker that sleeps beside a committed job for ever.
 */
#ifndef TWIN
#define TWIN 0
#endif
#define PRODUCERS 2
#define WORKERS 2

byte producing;                /* sessions that hold P, shared, until their commit */
byte waiting;                  /* sessions that hold W, shared */
byte committed;                /* jobs that a claim can see */
byte taken;
byte open = PRODUCERS;
bool notified[WORKERS];
bool asleep[WORKERS];

proctype producer() {
    bool notifies;
#if TWIN == 11
    notifies = (waiting > 0);  /* tests W before it holds P */
    producing++;
#else
    producing++;
    notifies = (waiting > 0);
#endif
    atomic {                   /* commit, or roll back: locks go with the transaction */
        if
        :: committed++;
            if
#if TWIN != 12
            :: notifies -> notified[0] = true; notified[1] = true
#endif
            :: else
            fi
        :: skip
        fi;
        producing--; open--
    }
}

inline claim() {
    atomic {
        found = false;
        if
        :: committed > 0 -> committed--; taken++; found = true
        :: else
        fi
    }
}

proctype worker(byte me) {
    bool found;
    bool quiet;
work:
    claim();
    if
    :: found -> goto work
    :: else
    fi;
#if TWIN == 13
    quiet = (producing == 0);  /* tries P before it holds W */
    notified[me] = false;
    waiting++;
#else
    /* Old notifications are dropped before W is held, never after. */
    notified[me] = false;
    waiting++;
    quiet = (producing == 0);
#endif
#if TWIN != 14
    claim();                   /* the last look */
#else
    found = false;
#endif
    if
    :: found || !quiet -> waiting--; goto work
    :: else
    fi;
    asleep[me] = true;
end_asleep:
    notified[me];
    asleep[me] = false;
    waiting--;
    goto work
}

init {
    atomic { run worker(0); run worker(1); run producer(); run producer() }
}

ltl no_lost_wake_up {
    [] !(open == 0 && committed > 0 && asleep[0] && asleep[1] && !notified[0] && !notified[1])
}
