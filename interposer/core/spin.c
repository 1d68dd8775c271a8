/* spin.c - recording: whether a task that makes no call waits for another one by spinning.
 *
 * The recorder asks a task that keeps the others waiting for long. Places where tasks were found spinning are remembered,
 * and from then on a task that has the baton looks by itself after a short while, by a timer of its own.
 * Guarantees: only the moment of a preemption depends on any of this, which is in the log; what is not proven to wait is
 * stopped so seldom that it costs at most a twentieth of the time that others wait for it.
 */
#include "core.h"

#define FIRST_NS 20000000ul  /* without a call, before anybody asks at a place not known */
#define LEAST_NS 50000ul     /* the same, where it is known to spin */
#define MOST_NS 1000000000ul
#define LONG_NS 250000000ul  /* after which anything counts as spinning */
#define COMPUTES 20u         /* times what a snapshot costs: how long what may compute goes on */
#define SPINS 1u             /* the same for what has been seen to wait */
#define BYTE_NS 50u          /* a byte of the log, in time */
#define PAGE_NS 800u         /* a written page will fault again */
#define CLOSE_BYTES 1024u    /* the same few instructions of a function */
#define SITE_BYTES 128u      /* one loop */
#define SITES 32u

struct site {
  u64 low, high; /* addresses it was found at */
  u64 wait;      /* nanoseconds */
  u64 cost;      /* of the latest snapshot there */
  u64 bytes;
  u32 proven;    /* all registers were the same twice: it cannot but wait */
};
static struct site sites[SITES];
static u32 nsites;

#define IDLE_LOOKS 64u       /* that found nothing, before looks become rarer */

static u32 idle_looks;

/* ---- the timer: it runs while the task has the baton ---- */

static void set_timer(struct thread *th, u64 ns) {
  struct { struct timespec interval, value; } in = {{0, 0}, {(s64)(ns / 1000000000ul), (s64)(ns % 1000000000ul)}};
  if (SYS4(RR_NR_timer_settime, th->timer - 1, 0, &in, NULL) >= 0) th->timer_armed = ns != 0;
}

void spin_arm(struct thread *th) {
  struct { u64 value; s32 signo, notify, tid, pad[11]; } event = {(u64)th, SIGSTKFLT, SIGEV_THREAD_ID, (s32)th->real_tid, {0}};
  s32 number;
  if (!th->timer) {
    if (SYS3(RR_NR_timer_create, CLOCK_MONOTONIC, &event, &number) < 0) return;
    th->timer = (u32)number + 1;
  }
  th->timer_wait = RING->spin_patience;
  th->timer_events = RING->event_count + 1; /* that of taking the baton */
  set_timer(th, th->timer_wait);
}

void spin_disarm(struct thread *th) { set_timer(th, 0); }

/* The task ends, or executes another program, which may know nothing of such signals. */
void spin_end(struct thread *th) {
  u64 only = BIT(SIGSTKFLT);
  struct timespec now = {0, 0};
  if (th->timer) SYS1(RR_NR_timer_delete, th->timer - 1);
  th->timer = th->timer_armed = 0;
  SYS4(RR_NR_rt_sigtimedwait, &only, NULL, &now, 8);
}

static void look_again(struct thread *th) {
  th->timer_wait = th->timer_wait * 2 < FIRST_NS ? th->timer_wait * 2 : FIRST_NS;
  set_timer(th, th->timer_wait);
}

/* Whether a SIGSTKFLT asks the task to look where it is, and after how long without a call. (The kernel says nothing of a
 * sender when it is short of memory for that.) */
int spin_asked(struct thread *th, const struct siginfo_k *info, u64 *ran) {
  *ran = FIRST_NS;
  if (info->code == SI_TIMER && info->kill.value == (u64)th) {
    th->timer_armed = 0;
    *ran = th->timer_events == RING->event_count ? th->timer_wait : 0;
    th->timer_events = RING->event_count;
    return 1;
  }
  return (info->code <= 0 && (u32)info->kill.pid == GLOBAL->tool_pid) || (info->code == 0 && !info->kill.pid);
}

/* It has the baton, and goes on. */
void spin_found_nothing(struct thread *th) {
  if (!th->timer || th->timer_armed || !RING->spin_patience || alone()) return;
  if (++idle_looks >= IDLE_LOOKS) {
    idle_looks = 0;
    RING->spin_patience = RING->spin_patience * 2 < FIRST_NS ? RING->spin_patience * 2 : 0;
  }
  look_again(th);
}

/* ---- the places ---- */

static struct site *site_near(u64 ip) {
  for (u32 i = 0; i < SITES; i++)
    if (sites[i].high && ip + SITE_BYTES >= sites[i].low && ip <= sites[i].high + SITE_BYTES) return &sites[i];
  return NULL;
}

static u64 least(const struct site *site) {
  u64 wait = site->cost * SPINS;
  return wait < LEAST_NS ? LEAST_NS : wait > MOST_NS ? MOST_NS : wait;
}

static u64 most(const struct site *site) {
  u64 wait = site->cost * COMPUTES + site->bytes * BYTE_NS;
  return wait < 1000000 ? 1000000 : wait > MOST_NS ? MOST_NS : wait;
}

static struct site *learn(u64 ip, u32 proven) {
  struct site *site = site_near(ip);
  if (!site) {
    site = &sites[nsites++ % SITES];
    *site = (struct site){.low = ip, .high = ip, .wait = FIRST_NS};
  }
  if (ip < site->low) site->low = ip;
  if (ip > site->high) site->high = ip;
  site->proven |= proven;
  return site;
}

static u64 hash_of(const u64 *regs) {
  u64 sum = 0;
  for (u32 i = 0; i <= R_EFLAGS; i++) sum = ((sum ^ regs[i]) * 0x9fb21c651e98df25ul) ^ (sum >> 29);
  return sum;
}

/* What became of the task since it was last stopped for spinning: with an event of its own it had been waiting; where
 * nobody had one meanwhile, the stop was of no use to anybody that one could tell. */
static void feedback(struct thread *th) {
  struct site *site = &sites[th->spun_at];
  if (!th->spun) return;
  th->spun = 0;
  if (site->proven || RING->event_count != th->spun_events)
    site->wait = site->wait / 4 > least(site) ? site->wait / 4 : least(site);
  else if (!th->spun_for)
    site->wait = site->wait * 3 / 2 < most(site) ? site->wait * 3 / 2 : most(site);
}

/* Whether the task, stopped after `ran` nanoseconds without a call, seems to wait for somebody rather than to compute:
 * it is where it was found spinning before; or it is in exactly the state it was in when asked before; or it was found in
 * the same few instructions three times, or at the very same place twice. What computes may go on for longer: a snapshot of
 * a large program costs much, and nobody may need what the others would do meanwhile. */
int seems_to_spin(struct thread *th, const u64 *regs, u64 ran) {
  u64 ip = regs[R_RIP], sp = regs[R_RSP], hash = hash_of(regs);
  if (th->poke_events != RING->event_count) {
    th->poke_events = RING->event_count;
    th->poke_since = now_coarse();
    th->poke_hashes = 0;
    th->pokes = 0;
  }
  feedback(th);
  struct site *site = site_near(ip);
  int known = site && ip >= site->low && ip <= site->high && ran >= (site->proven ? least(site) : site->wait);
  for (u32 i = 0; i < th->poke_hashes && i < POKES && !known; i++)
    if (th->poke_hash[i] == hash) {
      site = learn(ip, 1);
      known = 1;
    }
  th->poke_hash[th->poke_hashes++ % POKES] = hash;
  if (!known && ran >= FIRST_NS) {
    u32 seen = th->pokes < POKES ? th->pokes : POKES, near = 0;
    for (u32 i = 0; i < seen; i++) {
      u32 at = (th->pokes - 1 - i) % POKES;
      known |= th->poke_ip[at] == ip && th->poke_sp[at] == sp;
      near += i < 2 && ip - th->poke_ip[at] + CLOSE_BYTES < 2 * CLOSE_BYTES && th->poke_sp[at] == sp;
    }
    th->poke_ip[th->pokes % POKES] = ip;
    th->poke_sp[th->pokes % POKES] = sp;
    th->pokes++;
    known |= near == 2;
    if (known) site = learn(ip, 0);
    known |= now_coarse() - th->poke_since > LONG_NS;
  }
  if (!known) return 0;
  th->pokes = 0;
  th->spun = site != NULL;
  th->spun_at = site ? (u32)(site - sites) : 0;
  return 1;
}

/* It goes on, having been stopped for `took` nanoseconds that it took to save `bytes`; `others`: events that others made. */
void spin_stopped(struct thread *th, u64 took, u64 bytes, u64 others) {
  th->spun_events = RING->event_count;
  th->spun_for = others != 0;
  if (!th->spun) return;
  struct site *site = &sites[th->spun_at];
  site->cost = took + bytes / PAGE * PAGE_NS;
  site->bytes = bytes;
  u64 wait = site->proven ? least(site) : site->wait;
  idle_looks = 0;
  if (!RING->spin_patience || wait < RING->spin_patience) RING->spin_patience = wait;
}
