/* A commit has three ends: it is confirmed, it is refused, or nobody tells. A request under an Idempotency-Key makes one
   execution; WORKERS workers claim it and complete it, each in its handler's transaction, or in a statement of its own.

   Bounds: REQUESTS sendings of the one request, WORKERS workers, ATTEMPTS attempts. Any answer may be lost; what was
   sent may be carried out long after its sender has given it up, or never. Leases lapse whenever they like (lease.pml
   is about when they may), but for a row that is locked, which the reaper passes over.

   What each step stands for; tests/models/test_models.py sees to it that the code still says so:
   mirrors app/db/transactions.py: Under an Idempotency-Key the key is the first thing that it writes
   mirrors app/db/queries/settle.sql: e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
   mirrors app/db/queries/retry.sql: e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
   mirrors app/db/queries/is_still_ours.sql: FOR KEY SHARE
   mirrors app/db/queries/reap_running.sql: FOR UPDATE SKIP LOCKED
   mirrors app/db/stores/effects.py: kept = await settle_on(self.connection, settlement)
   mirrors app/worker/committer.py: committed = await self._effects.is_committed(attempt.claim)

   Twins that are broken on purpose, each with the claim that must fail:
   twin KEY=0: one_execution         no unique key: what is sent again is stored again
   twin FENCE=0: done_once           a result is written whatever the row's epoch is
   twin TOGETHER=0: done_once        the effect is committed before the completion, not with it
   twin ASKS=0: told_the_truth       a commit that was not confirmed is taken for one that failed
   twin WAITS=0: told_the_truth      the database is asked, but does not wait for the commit that is under way
   twin REAPS=0: ends                nobody takes back what a worker claimed without learning of it */
#ifndef KEY
#define KEY 1
#endif
#ifndef FENCE
#define FENCE 1
#endif
#ifndef TOGETHER
#define TOGETHER 1
#endif
#ifndef ASKS
#define ASKS 1
#endif
#ifndef WAITS
#define WAITS 1
#endif
#ifndef REAPS
#define REAPS 1
#endif
#define REQUESTS 2
#define WORKERS 2
#define ATTEMPTS 2

mtype = { NONE, READY, RUNNING, COMPLETED, FAILED, OPEN, CLOSED };

/* The database: the execution's row, the key, and what each worker's transaction has come to. */
mtype status = NONE;
bool key_kept;
byte executions, attempt, epoch, completions, effects, completed_epoch;
mtype transaction[WORKERS] = CLOSED;

/* On the way, and what was told. */
byte requests, answers, held[WORKERS];
bool told_stored;
byte told_done, told_failed;
bool claim_unknown, commit_unknown, committed_late;

#define locked (transaction[0] == OPEN || transaction[1] == OPEN)
#define is_mine(me) (status == RUNNING && epoch == held[me])

proctype Producer() {
  byte tries;
  do
  :: tries < REQUESTS -> atomic { requests++; tries++ }
  :: atomic { answers > 0 -> told_stored = true }; break
  :: tries == REQUESTS -> break  /* it does not know */
  od
}

proctype Database() {
end:
  do
  :: atomic { requests > 0 -> requests--; answers++;
      if
      :: KEY && key_kept -> skip  /* the answer that was kept */
      :: else -> key_kept = true; executions++; status = (status == NONE -> READY : status)
      fi }
  :: atomic { requests > 0 -> requests-- }  /* broken off: rolled back */
  :: atomic { answers > 0 -> answers-- }
  od
}

inline end_attempt() {
  epoch++; status = (attempt < ATTEMPTS -> READY : FAILED)
}

proctype Worker(byte me) {
end:
  do
  :: atomic { held[me] == 0 && status == READY -> status = RUNNING; attempt++; epoch++;
      if
      :: held[me] = epoch
      :: claim_unknown = true
      fi }

  :: atomic { held[me] != 0 ->  /* a completion of its own: sent again until it is answered */
      if
      :: (is_mine(me) || (!FENCE && completions > 0)) && !locked ->
        status = COMPLETED; completions++; effects++; completed_epoch = held[me]
      :: !is_mine(me) && (FENCE || completions == 0) -> skip
      fi;
      if
      :: held[me] = 0
      :: commit_unknown = true
      fi }

  :: held[me] != 0 ->  /* in the handler's transaction */
    atomic { !locked;
      if
      :: !TOGETHER -> effects++
      :: else
      fi;
      if
      :: is_mine(me) -> transaction[me] = OPEN
      :: else -> held[me] = 0; goto again
      fi }
    if
    :: transaction[me] == CLOSED; held[me] = 0; goto again  /* answered */
    :: commit_unknown = true
    fi;
    if
    :: ASKS ->
      atomic { !WAITS || transaction[me] != OPEN ->
        if
        :: is_mine(me) -> told_failed = held[me]
        :: !is_mine(me) && completed_epoch == held[me] -> told_done = held[me]; held[me] = 0
        :: else -> held[me] = 0
        fi }
    :: !ASKS -> told_failed = held[me]
    fi;
    atomic { held[me] == 0 || transaction[me] != OPEN;
      if
      :: held[me] != 0 && is_mine(me) -> end_attempt()
      :: else
      fi;
      held[me] = 0 }
again: skip
  od
}

proctype Commit(byte me) {  /* the server's side: it needs nobody to wait for it */
end:
  do
  :: atomic { transaction[me] == OPEN -> transaction[me] = CLOSED; status = COMPLETED; completions++;
      completed_epoch = epoch; committed_late = committed_late || commit_unknown;
      if
      :: TOGETHER -> effects++
      :: else
      fi }
  :: atomic { transaction[me] == OPEN -> transaction[me] = CLOSED }
  od
}

proctype Reaper() {
end:
  do
  :: atomic { REAPS && status == RUNNING && !locked -> end_attempt() }
  od
}

init {
  atomic { run Producer(); run Database(); run Worker(0); run Worker(1); run Commit(0); run Commit(1); run Reaper() }
}

ltl one_execution  { [] (executions <= 1 && (told_stored -> executions == 1)) }
ltl done_once      { [] (completions <= 1 && effects <= 1 && (effects == 0 || status == COMPLETED)) }
ltl told_the_truth { [] ((told_failed == 0 || told_failed != completed_epoch) && (told_done == 0 || told_done == completed_epoch)) }
ltl ends           { [] (status != NONE -> <> (status == COMPLETED || status == FAILED)) }

/* Reached: each must be refuted. */
ltl reach_stored_untold { [] !(executions == 1 && !told_stored && requests == 0 && answers == 0) }
ltl reach_claim_unknown { [] !(claim_unknown && status == COMPLETED) }
ltl reach_asked_done    { [] !(told_done != 0) }
ltl reach_asked_failed  { [] !(told_failed != 0 && status == COMPLETED) }
ltl reach_late_commit   { [] !committed_late }
