/* One execution, its leases, WORKERS workers that may freeze or die anywhere, and the reaper.

   Bounds: WORKERS workers, ATTEMPTS attempts, leases of LEASE ticks. Time is what the ages count: a tick makes the
   row's lease and every worker's belief about it one older, up to LEASE, where a lease is over. Ticks come whenever
   they like, so a worker may be frozen for as long as it takes between any two of its steps, and the reaper be late.
   Clocks run at one rate; they need not agree on the time. A worker that dies forgets what it held and is another one.
   Attempts end by success or by their worker's death, of which an execution survives ATTEMPTS - 1.

   What each step stands for; tests/models/test_models.py sees to it that the code still says so:
   mirrors app/db/queries/claim_due.sql: attempt_number = e.attempt_number + 1, lease_epoch = e.lease_epoch + 1
   mirrors app/db/queries/renew.sql: e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
   mirrors app/db/queries/settle.sql: e.execution_id = x.execution_id AND e.lease_epoch = x.lease_epoch
   mirrors app/db/queries/reap_running.sql: status = 'RUNNING' AND lease_expires_at < now()
   mirrors app/db/queries/reap_running.sql: AND (worker_deaths < 3 OR lease_expires_at < $4::timestamptz)
   mirrors app/worker/leases.py: return held is not None and not held.has_lapsed(time.monotonic())
   mirrors app/worker/leases.py: if held.lease in prolonged:
   mirrors docs/effects.md: UPDATE … SET token = $1 WHERE id = 7 AND token < $1

   Twins that are broken on purpose, each with the claim that must fail:
   twin FENCE=0: settled_once                    a result is written whatever the row's epoch is
   twin EFFECT_FENCE=0: effects_in_order         who takes the effect does not compare tokens
   twin LOOKS_TWICE=0: lapsed_only               the reaper frees what had lapsed when it looked, renewed meanwhile or not
   twin CHECKS_BEFORE=0: begins_rightly          an attempt begins though its lease was over when it was looked at
   twin COUNTS_FROM_REPLY=1: believes_less       a lease is believed to last from when its renewal was answered
   twin SKIPPED_IS_RENEWED=1: believes_less      a lease whose row was locked, and so passed over, is believed renewed
   twin SKIPPED_IS_RENEWED=1: one_believes       the same: two workers may act at once
   twin LIMITS=0: few_attempts                   the reaper frees an execution however often its worker has died */
#ifndef FENCE
#define FENCE 1
#endif
#ifndef EFFECT_FENCE
#define EFFECT_FENCE 1
#endif
#ifndef LOOKS_TWICE
#define LOOKS_TWICE 1
#endif
#ifndef CHECKS_BEFORE
#define CHECKS_BEFORE 1
#endif
#ifndef COUNTS_FROM_REPLY
#define COUNTS_FROM_REPLY 0
#endif
#ifndef SKIPPED_IS_RENEWED
#define SKIPPED_IS_RENEWED 0
#endif
#ifndef LIMITS
#define LIMITS 1
#endif
#define WORKERS 2
#define ATTEMPTS 2
#define LEASE 2

mtype = { READY, RUNNING, COMPLETED, FAILED };

/* The row. */
mtype status = READY;
byte attempt, epoch, lease_age;

/* What each worker believes: the epoch it holds (0: nothing), and how old that lease is at least. */
byte held[WORKERS], believed_age[WORKERS], sent_age[WORKERS];
bool begun[WORKERS];

/* Who takes the effect: the newest token it has seen. */
byte effect_token;

/* What must never, and what must sometimes be true. */
byte settlements, settled_epoch;
bool effect_out_of_order, reaped_alive, begun_lapsed;
bool renewed, refused_result, refused_effect, died;

#define is_over(age) (age >= LEASE)
#define older(age) age = (age < LEASE -> age + 1 : LEASE)
#define forget(me) held[me] = 0; believed_age[me] = 0; sent_age[me] = 0; begun[me] = false

inline claim(me) {
  atomic { status == READY && held[me] == 0 -> status = RUNNING; attempt++; epoch++; lease_age = 0;
    held[me] = epoch; believed_age[me] = 0; sent_age[me] = 0 }
}

inline begin(me) {  /* looked at, and begun: between the two a worker may freeze, and only who takes the effect knows */
  atomic { held[me] != 0 && !begun[me] ->
    if
    :: !CHECKS_BEFORE || !is_over(believed_age[me]) ->
      begun[me] = true; begun_lapsed = begun_lapsed || is_over(believed_age[me])
    :: else -> forget(me)
    fi }
}

inline act(me) {
  atomic { begun[me] ->
    if
    :: !EFFECT_FENCE || held[me] >= effect_token ->
      effect_out_of_order = effect_out_of_order || held[me] < effect_token; effect_token = held[me]
    :: else -> refused_effect = true
    fi }
}

inline renew(me) {  /* sent, carried out (or the row is locked by somebody: passed over), answered */
  atomic { held[me] != 0 && !is_over(believed_age[me]) -> sent_age[me] = 0 }
  if
  :: atomic { status == RUNNING && epoch == held[me] -> lease_age = 0; renewed = true; answer = true }
  :: atomic { status == RUNNING && epoch == held[me] -> answer = SKIPPED_IS_RENEWED }
  :: atomic { status != RUNNING || epoch != held[me] -> forget(me); answer = false }
  fi;
  atomic {
    if
    :: answer -> believed_age[me] = (COUNTS_FROM_REPLY -> 0 : sent_age[me])
    :: else
    fi;
    answer = false }
}

inline settle(me) {
  atomic { begun[me] ->
    if
    :: status == RUNNING && (!FENCE || epoch == held[me]) ->
      status = COMPLETED; settlements++; settled_epoch = held[me]
    :: else -> refused_result = true
    fi;
    forget(me) }
}

proctype Worker(byte me) {
  bool answer;
end:
  do
  :: claim(me)
  :: begin(me)
  :: act(me)
  :: renew(me)
  :: settle(me)
  :: atomic { held[me] != 0 && is_over(believed_age[me]) -> forget(me) }  /* no lease, no right to act */
  :: atomic { held[me] != 0 -> forget(me); died = true }
  od
}

proctype Reaper() {
  bool lapsed;
end:
  do
  :: atomic { status == RUNNING && is_over(lease_age) -> lapsed = true }
    atomic {
      if
      :: lapsed && status == RUNNING && (!LOOKS_TWICE || is_over(lease_age)) ->
        reaped_alive = reaped_alive || !is_over(lease_age);
        epoch++; status = (attempt < ATTEMPTS || !LIMITS -> READY : FAILED)
      :: else
      fi;
      lapsed = false }
  od
}

proctype Time() {
  byte w;
end:
  do
  :: atomic { status == RUNNING || held[0] != 0 || held[1] != 0 ->
      older(lease_age);
      for (w : 0 .. WORKERS - 1) { older(believed_age[w]); older(sent_age[w]) }
      w = 0 }
  od
}

init {
  atomic { run Worker(0); run Worker(1); run Reaper(); run Time() }
}

#define holds(me) (held[me] != 0 && !is_over(believed_age[me]))
#define is_his(me) (status != RUNNING || epoch == held[me])

ltl settled_once   { [] (settlements <= 1 && (settlements == 0 || settled_epoch == epoch)) }
ltl effects_in_order { [] !effect_out_of_order }
ltl lapsed_only    { [] !reaped_alive }
ltl begins_rightly { [] !begun_lapsed }
ltl believes_less  { [] ((holds(0) -> (is_his(0) && believed_age[0] >= lease_age)) &&
                         (holds(1) -> (is_his(1) && believed_age[1] >= lease_age))) }
ltl one_believes   { [] !(holds(0) && holds(1)) }
ltl few_attempts   { [] (attempt <= ATTEMPTS) }

/* Reached: each must be refuted. */
ltl reach_renewed        { [] !(renewed && status == COMPLETED) }
ltl reach_second_attempt { [] !(status == COMPLETED && attempt == ATTEMPTS && died) }
ltl reach_exhausted      { [] !(status == FAILED) }
ltl reach_late_result    { [] !(refused_result && status == COMPLETED) }
ltl reach_late_effect    { [] !refused_effect }
ltl reach_both_run       { [] !(begun[0] && begun[1]) }
