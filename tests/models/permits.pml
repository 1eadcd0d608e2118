/* A limit of LIMIT at once on EXECUTIONS executions, WORKERS workers that may die or come back late anywhere, the reaper, the
   sweep, and whoever sets the limit while something runs already.

   Bounds: WORKERS workers with one execution each, ATTEMPTS attempts, one limit. Leases lapse whenever they like (lease.pml
   is about when they may); a worker that lost one may go on for as long as it takes, and free what it held late or never.

   What each step stands for; tests/models/test_models.py sees to it that the code still says so:
   mirrors app/db/queries/lock_limits.sql: pg_try_advisory_xact_lock(hashtextextended(key, 7))
   mirrors app/db/stores/admissions.py: locked = [row[0] for row in await connection.fetch(load("lock_limits"), wanted)]
   mirrors app/db/queries/claim_admitted.sql: SET lease_epoch = excluded.lease_epoch
   mirrors app/worker/settler.py: released = await self._write(self._releases, self._executions.release)
   mirrors app/db/queries/free_holders.sql: h.execution_id = x.execution_id AND h.lease_epoch = x.lease_epoch
   mirrors app/db/queries/stale_holders.sql: e.status = 'RUNNING' AND e.lease_epoch = h.lease_epoch
   mirrors app/db/queries/stale_holders.sql: h.execution_id = s.execution_id AND h.lease_epoch = s.lease_epoch
   mirrors app/db/stores/limits.py: async with self._locked(limit.key) as connection:
   mirrors app/db/queries/count_running.sql: WHERE h.lease_epoch < excluded.lease_epoch

   Twins that are broken on purpose, each with the claim that must fail:
   twin LOCKS=0: never_more            what counts is looked at without the lock
   twin LOOKS_AFTER=0: never_more      what counts is looked at before the lock is there, as one statement for both would
   twin FREE_BY_EPOCH=0: never_more    the end of an old lease takes away what a newer one holds
   twin SWEEP_BY_EPOCH=0: never_more   the sweep deletes what was stale when it looked, claimed anew meanwhile or not
   twin FREES_LAST=0: never_more       a place is free before its end is written down
   twin SET_LOCKS=0: never_more        whoever claims sees a new limit before all that runs is counted
   twin COUNTS_AGAIN=0: never_more     what began while a new limit was being told is not counted
   twin SWEEPS=0: ends                 nobody frees what a worker held that died between its end and its freeing

   given WORKERS=1: ends               nobody waits for another worker, but for what it holds: one is enough, and tried sooner */
#ifndef LOCKS
#define LOCKS 1
#endif
#ifndef LOOKS_AFTER
#define LOOKS_AFTER 1
#endif
#ifndef FREE_BY_EPOCH
#define FREE_BY_EPOCH 1
#endif
#ifndef SWEEP_BY_EPOCH
#define SWEEP_BY_EPOCH 1
#endif
#ifndef FREES_LAST
#define FREES_LAST 1
#endif
#ifndef SET_LOCKS
#define SET_LOCKS 1
#endif
#ifndef COUNTS_AGAIN
#define COUNTS_AGAIN 1
#endif
#ifndef SWEEPS
#define SWEEPS 1
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#define EXECUTIONS 2
#define ATTEMPTS 2
#define LIMIT 1

mtype = { READY, RUNNING, ENDED };

/* The rows, and what counts: the epoch under which each does (0: it does not). */
mtype status[EXECUTIONS] = READY;
byte epoch[EXECUTIONS], held[EXECUTIONS];
bool limited[EXECUTIONS], locked;

/* What must never, and what must sometimes be true. */
bool exceeded, swept, freed_late;

#define runs(e) (status[e] == RUNNING)
#define running (runs(0) + runs(1))
#define counted ((held[0] != 0) + (held[1] != 0))
#define attempts(e) ((epoch[e] + 1) / 2)  /* each begins and ends a lease */
#define waits(e, beside) (status[e] == READY && limited[e] == beside)
#define is_stale(e) (held[e] != 0 && !(runs(e) && epoch[e] == held[e]))

inline begin(e) {
  status[e] = RUNNING; epoch[e]++; mine = e; token = epoch[e]
}

inline end_attempt(e) {
  epoch[e]++; status[e] = (attempts(e) < ATTEMPTS -> READY : ENDED)
}

inline free() {
  if
  :: held[mine] == token || !FREE_BY_EPOCH -> held[mine] = 0
  :: else -> freed_late = true
  fi
}

inline settle() {  /* completed, or failed and to be tried again; or too late, and somebody else's */
  if
  :: runs(mine) && epoch[mine] == token -> status[mine] = ENDED
  :: runs(mine) && epoch[mine] == token -> end_attempt(mine)
  :: !(runs(mine) && epoch[mine] == token) -> skip
  fi
}

proctype Worker() {
  byte mine, token, seen, which;
end:
  do
  :: atomic { token == 0 && waits(0, false) -> begin(0) }
  :: atomic { token == 0 && waits(1, false) -> begin(1) }

  :: atomic { token == 0 && (waits(0, true) || waits(1, true)) && (!locked || !(LOCKS && LOOKS_AFTER)) ->
      if  /* beside the limit: locked, looked at, claimed and committed */
      :: waits(0, true) -> which = 0
      :: waits(1, true) -> which = 1
      fi;
      seen = counted; locked = (LOCKS && LOOKS_AFTER -> true : locked) }
    if
    :: atomic { LOCKS && LOOKS_AFTER -> seen = counted }
    :: atomic { LOCKS && !LOOKS_AFTER -> !locked; locked = true }
    :: atomic { !LOCKS -> seen = counted }
    fi;
    atomic {
      if
      :: status[which] == READY && seen - (held[which] != 0) < LIMIT ->
        begin(which); held[which] = token; exceeded = exceeded || running > LIMIT
      :: else
      fi;
      locked = (LOCKS -> false : locked); seen = 0; which = 0 }

  :: FREES_LAST && token != 0 -> atomic { settle() }
    if
    :: atomic { free(); token = 0; mine = 0 }
    :: atomic { token = 0; mine = 0 }  /* it dies in between */
    fi
  :: !FREES_LAST && token != 0 -> atomic { free() }
    atomic { settle(); token = 0; mine = 0 }
  :: atomic { token != 0 -> token = 0; mine = 0 }  /* it dies */
  od
}

proctype Reaper() {
end:
  do
  :: atomic { runs(0) -> end_attempt(0) }
  :: atomic { runs(1) -> end_attempt(1) }
  od
}

inline sweep(e) {
  atomic { SWEEPS && is_stale(e) -> stale = held[e] }
  atomic {
    if
    :: held[e] == stale || !SWEEP_BY_EPOCH -> held[e] = 0; swept = true
    :: else
    fi;
    stale = 0 }
}

proctype Sweep() {
  byte stale;
end:
  do
  :: sweep(0)
  :: sweep(1)
  od
}

inline count(e) {
  if
  :: runs(e) && held[e] < epoch[e] -> held[e] = epoch[e]
  :: else
  fi
}

proctype Setter() {
  atomic { !SET_LOCKS || !locked -> locked = (SET_LOCKS -> true : locked) }
  atomic { count(0); count(1) }
  limited[0] = true;
  limited[1] = true;
  atomic {
    if
    :: COUNTS_AGAIN -> count(0); count(1)
    :: else
    fi }
  locked = (SET_LOCKS -> false : locked)
}

init {
  atomic {
    run Worker(); run Reaper(); run Sweep(); run Setter();
    if
    :: WORKERS > 1 -> run Worker()
    :: else
    fi }
}

ltl never_more { [] !exceeded }
ltl ends       { <> (status[0] == ENDED && status[1] == ENDED && counted == 0) }

/* Reached: each must be refuted. */
ltl reach_swept      { [] !swept }
ltl reach_freed_late { [] !freed_late }
ltl reach_more_ran   { [] !(limited[0] && limited[1] && counted > LIMIT) }
ltl reach_second     { [] !(counted == LIMIT && attempts(0) == ATTEMPTS && attempts(1) == ATTEMPTS) }
