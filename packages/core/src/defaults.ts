/** Every default in one place, each with the reason for its number. */

/** 5: gRPC's maximum. A sixth attempt rarely succeeds when five attempts spread over a minute failed. */
export const ATTEMPTS = 5
/** 3 for sinks: a producer waits for them. */
export const SINK_ATTEMPTS = 3
/** 1 s: shorter than a reconnect, longer than a lock conflict. */
export const BACKOFF_BASE_MS = 1_000
/** 60 s: n retries spread over c seconds peak at n/c per second. A minute keeps thousands of messages below a hundred per second. */
export const BACKOFF_CAP_MS = 60_000
export const SINK_BACKOFF_BASE_MS = 100
export const SINK_BACKOFF_CAP_MS = 5_000
/** 10 ms: full jitter may draw zero, and retries without any delay are the storm that Redrive prevents. */
export const BACKOFF_FLOOR_MS = 10
export const BACKOFF_FACTOR = 2
/** 14 days: older retries would outlive the retention of their own dead letters. */
export const MAX_AGE_MS = 1_209_600_000
/** 1 hour: most outages are shorter, and an on-call engineer can still react on the same day. */
export const UNPROVEN_MAX_AGE_MS = 3_600_000
/** 20 runs: half of them in the first six minutes, then one every six minutes. */
export const UNPROVEN_RUNS = 20
/** +20 %: messages that failed together should not return together. */
export const UNPROVEN_JITTER = 0.2
/** 1 s: for a shorter wait a hand-off to the broker costs more. A longer wait should survive a crash. */
export const INLINE_BELOW_MS = 1_000
/** 30 s: longer than sensible request timeouts inside a handler, shorter than every broker's redelivery timeout. */
export const TIMEOUT_MS = 30_000
/** 5 s: a handler that passes its signal on ends in milliseconds; a driver may need a few seconds to cancel a query. */
export const GRACE_MS = 5_000
/** 50: with more, the measured throughput hardly grows. The adaptive limit stays below it when the dependency is slower. */
export const CONCURRENCY = 50
/** 10 attempts of history: enough to see a pattern, small enough for every broker's headers. */
export const HISTORY = 10
/** 14 days, two on-call rotations. */
export const DEAD_LETTER_RETENTION_MS = 1_209_600_000

/** 5 in a row: by chance once in 100,000 at a 10 % error rate. */
export const BREAKER_FAILURES = 5
/** 1 s: the first probe is cheap, and most outages end within seconds. */
export const BREAKER_MIN_OPEN_MS = 1_000
/** 30 s (60 s for sinks): the maximum delay until a recovered dependency is used again. */
export const BREAKER_MAX_OPEN_MS = 30_000
export const SINK_BREAKER_MAX_OPEN_MS = 60_000
/**
 * 0.1: the next probe waits a tenth of the outage so far. When the recovery is noticed p late after an
 * outage of D, the drain takes 1 + (p/D)(μ/λ) of its minimum: 1.15 at a capacity of 1.5 arrivals.
 * A fixed 30 s after a 60 s outage would make it 1.75.
 */
export const BREAKER_OPEN_SHARE = 0.1
/** ±20 % so that a fleet that opened together does not probe together. */
export const BREAKER_OPEN_JITTER = 0.2
export const BREAKER_PROBES = 1
/** 2: one success may be chance or a cache. */
export const BREAKER_SUCCESSES = 2

/** When a quarter fails together, the dependency is the cause. One poison message among others never reaches that. */
export const SICK_RATIO = 0.25
/** At least 5, so that one bad message on a quiet queue does not count as an outage. */
export const SICK_FAILURES = 5
/** 30 s: long enough for 5 failures on a quiet queue, short enough to drop an outage that has ended. */
export const SICK_WINDOW_MS = 30_000

/** 10 % of successes (Google SRE's per-client ratio): a fleet of any size is then bounded to 10 % too. */
export const BUDGET_RATIO = 0.1
/** 10/s minimum (Finagle): a consumer without successes must still be able to retry. */
export const BUDGET_FLOOR_PER_SECOND = 10
/** 10 s of the minimum rate: the maximum that can be saved. */
export const BUDGET_BURST = 100
/** 100 retries/s at most, whatever the ratio allows. */
export const BUDGET_RATE_PER_SECOND = 100
/** Retries over the budget return 10 at a time, one batch per second. This is the minimum rate, so they fit into it. */
export const RELEASE_BATCH = 10
export const RELEASE_INTERVAL_MS = 1_000

/** Slow start from 10: more than most handlers need, far below what overloads a dependency. */
export const LIMIT_START = 10
export const LIMIT_MIN = 1
/** x0.7 on overload: the value of the fleet model. 0.5 loses throughput, 0.9 reacts too slowly. */
export const LIMIT_DECREASE = 0.7
/** An attempt that takes half of its timeout is late: K <= μ·T·0.5 is the safe side of K <= μ·T. */
export const LATE_SHARE = 0.5
/** 1 hour without one success in time: longer than most drains. Then the handler has become slow, for example by a new step. */
export const SLOW_AFTER_MS = 3_600_000
/**
 * 1 minute: longer than the default timeout with its grace period, so no request to a dependency takes as long. An
 * attempt that does is a job. It holds a slot of `concurrency`, and no more of the limits for an unhealthy dependency.
 */
export const LONG_RUN_MS = 60_000

/** The same failure three times is not chance. */
export const POISON_REPEATS = 3
/** 1 day: failures further apart are separate incidents. */
export const POISON_WINDOW_MS = 86_400_000
/** The third delivery without a settlement: two processes crashed while it was in flight. */
export const SUSPECT_DELIVERIES = 3
/** Three more crashes while no other message was in flight: the message is the cause. */
export const TRIALS = 3

/** A burst of 100 similar dead letters is an incident. More would only move the source into the dead-letter queue. */
export const FLOOD_BURST = 100
/** Then one per second: the operator has been alerted, and a source of truly bad messages still drains. */
export const FLOOD_PER_MINUTE = 60
/** 64 signatures are watched; the one idle longest is removed first. */
export const FLOOD_SIGNATURES = 64

/** A dependency may request a wait of one day at most. A longer one is a mistake in its header. */
export const PUSHBACK_MAX_MS = 86_400_000
/** +10 %: clients that received the same wait time should not return at the same time. */
export const PUSHBACK_JITTER = 0.1
