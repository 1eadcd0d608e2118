/* A standby is promoted while the old primary lives on, a zombie: one execution, on two servers that no longer agree.

   Bounds: WORKERS workers, EPOCHS epochs on each server. The standby follows as late as it likes; with SYNC=1 a commit
   is answered when the standby has it, so that a primary without its standby answers none. The old primary is never
   shot, and any worker may be left on it, or begin on it. Leases lapse whenever they like on either.

   What each step stands for; tests/models/test_models.py sees to it that the code still says so:
   mirrors app/worker/pool.py: fencing_token=(self._timeline << 40) + claim.lease_epoch
   mirrors app/db/primary.py: if self._bound_to is not None and answer.timeline > self._bound_to:
   mirrors app/db/primary.py: if 0 < answer.timeline < self.timeline:
   mirrors docs/effects.md: UPDATE … SET token = $1 WHERE id = 7 AND token < $1

   given SYNC=1: answers_stay

   Twins that are broken on purpose, each with the claim that must fail:
   twin TIMELINE=0: tokens_differ    a token is the lease's epoch alone
   twin TIMELINE=0: new_after_old    the same: who takes the effect takes one from the zombie after the new primary's
   twin BINDS=0: tokens_differ       a worker goes over to the new primary and keeps the timeline it began with
   twin SYNC=0: answers_stay         a completion was confirmed that the standby did not have (docs/failover.md) */
#ifndef TIMELINE
#define TIMELINE 1
#endif
#ifndef BINDS
#define BINDS 1
#endif
#ifndef SYNC
#define SYNC 0
#endif
#define WORKERS 2
#define EPOCHS 3
#define OLD 0
#define NEW 1

mtype = { READY, RUNNING, COMPLETED };

/* The execution as each server has it. */
mtype status[2] = READY;
byte epoch[2];
bool promoted;

/* Each worker: its server, the timeline it is bound to (server + 1; 0: it has not begun), the epoch and token it holds. */
byte server[WORKERS], bound[WORKERS], held[WORKERS], token[WORKERS];

/* Who takes the effect: the newest token, and where it came from. */
byte effect_token, effect_server;

short granted;  /* a bit a token */
bool granted_twice, old_after_new, answered, forgotten;
bool zombie_claimed, zombie_refused, moved;

#define token_of(me) ((TIMELINE -> bound[me] * 4 : 0) + epoch[server[me]])
#define answers(s) (s == NEW || !SYNC || !promoted)
#define follow() if :: SYNC && !promoted -> status[NEW] = status[OLD]; epoch[NEW] = epoch[OLD] :: else fi
#define forget(me) held[me] = 0; token[me] = 0

proctype Worker(byte me) {
end:
  do
  :: atomic { bound[me] == 0 -> server[me] = OLD; bound[me] = 1 }
  :: atomic { bound[me] == 0 && promoted -> server[me] = NEW; bound[me] = 2 }
  :: atomic { bound[me] == 1 && promoted ->  /* it has seen the newer timeline: it begins anew, or is wrong */
      forget(me); server[me] = NEW; bound[me] = (BINDS -> 2 : 1); moved = true }
  :: atomic { bound[me] != 0 && held[me] == 0 && status[server[me]] == READY && epoch[server[me]] < EPOCHS && answers(server[me]) ->
      status[server[me]] = RUNNING; epoch[server[me]]++;
      held[me] = epoch[server[me]]; token[me] = token_of(me);
      granted_twice = granted_twice || (granted >> token[me]) & 1;
      granted = granted | (1 << token[me]);
      zombie_claimed = zombie_claimed || (server[me] == OLD && promoted);
      follow() }
  :: atomic { held[me] != 0 ->
      if
      :: token[me] >= effect_token ->
        old_after_new = old_after_new || (server[me] == OLD && effect_server == NEW);
        effect_token = token[me]; effect_server = server[me]
      :: else -> zombie_refused = zombie_refused || server[me] == OLD
      fi }
  :: atomic { held[me] != 0 ->
      if
      :: status[server[me]] == RUNNING && epoch[server[me]] == held[me] && answers(server[me]) ->
        status[server[me]] = COMPLETED; answered = true; follow()
      :: status[server[me]] != RUNNING || epoch[server[me]] != held[me] -> skip
      fi;
      forget(me) }
  od
}

proctype Reaper(byte s) {
end:
  do
  :: atomic { status[s] == RUNNING && epoch[s] < EPOCHS && answers(s) -> epoch[s]++; status[s] = READY;
      if
      :: s == OLD -> follow()
      :: else
      fi }
  od
}

proctype Standby() {
end:
  do
  :: atomic { !promoted && !SYNC -> status[NEW] = status[OLD]; epoch[NEW] = epoch[OLD] }
  :: atomic { !promoted -> promoted = true; forgotten = answered && status[NEW] != COMPLETED; run Reaper(NEW) }
  :: atomic { promoted && answered && status[NEW] != COMPLETED -> forgotten = true }
  od
}

init {
  atomic { run Worker(0); run Worker(1); run Reaper(OLD); run Standby() }
}

ltl tokens_differ { [] !granted_twice }
ltl new_after_old { [] !old_after_new }
ltl answers_stay  { [] !forgotten }

/* Reached: each must be refuted. */
ltl reach_zombie_claims { [] !zombie_claimed }
ltl reach_zombie_refused { [] !zombie_refused }
ltl reach_both_run { [] !(promoted && status[OLD] == RUNNING && status[NEW] == RUNNING) }
ltl reach_moved { [] !(moved && status[NEW] == COMPLETED) }
