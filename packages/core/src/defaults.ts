/** Every default in one place, each with the reason for its number. */

/** 5: gRPC's ceiling; a sixth attempt rarely succeeds where five spread over a minute did not. */
export const ATTEMPTS = 5
/** 3 for sinks: a producer is waiting behind them. */
export const SINK_ATTEMPTS = 3
/** 1 s: shorter than a connection re-establishes, longer than a lock conflict lasts. */
export const BACKOFF_BASE_MS = 1_000
/** 60 s: n retries spread over c seconds peak at n/c per second; a minute keeps a backlog of thousands below a hundred per second. */
export const BACKOFF_CAP_MS = 60_000
export const SINK_BACKOFF_BASE_MS = 100
export const SINK_BACKOFF_CAP_MS = 5_000
/** 10 ms: full jitter may draw zero, and a retry with no delay at all is the storm we exist to prevent. */
export const BACKOFF_FLOOR_MS = 10
export const BACKOFF_FACTOR = 2
/** 14 days: retries older than the dead-letter retention would outlive their own record. */
export const MAX_AGE_MS = 1_209_600_000
/** 1 s: below it a hand-off to the broker costs more than the wait, above it a crash should not lose the wait. */
export const INLINE_BELOW_MS = 1_000
/** 30 s: longer than any sane request timeout below it, shorter than every broker's redelivery timeout. */
export const TIMEOUT_MS = 30_000
/** 50: the knee of the measured prefetch curve; the adaptive limit stays below it when the dependency is slower. */
export const CONCURRENCY = 50
/** 10 attempts of history: enough to see a pattern, small enough for every broker's headers. */
export const HISTORY = 10
/** 14 days, two on-call rotations. */
export const DEAD_LETTER_RETENTION_MS = 1_209_600_000

/** 5 in a row: by chance once in 100,000 at a 10 % error rate. */
export const BREAKER_FAILURES = 5
/** 1 s: the first probe is cheap, and most trouble is over within seconds. */
export const BREAKER_MIN_OPEN_MS = 1_000
/** 30 s (60 s for sinks): the longest a recovered dependency waits to be noticed. */
export const BREAKER_MAX_OPEN_MS = 30_000
export const SINK_BREAKER_MAX_OPEN_MS = 60_000
/**
 * 0.1: the next probe waits a tenth of the outage so far. Noticing the recovery p late after an outage
 * of D stretches the drain to 1 + (p/D)(μ/λ) of its minimum: 1.15 at a capacity of 1.5 arrivals.
 * A fixed 30 s after a 60 s outage would make it 1.75.
 */
export const BREAKER_OPEN_SHARE = 0.1
/** ±20 % so that a fleet that opened together does not probe together. */
export const BREAKER_OPEN_JITTER = 0.2
export const BREAKER_PROBES = 1
/** 2: one success may be luck or a cache. */
export const BREAKER_SUCCESSES = 2

/** A quarter failing together is the dependency; one poison message among others never is. */
export const SICK_RATIO = 0.25
/** At least 5, so that a quiet queue with one bad message is not called an outage. */
export const SICK_FAILURES = 5
/** 30 s: long enough for 5 failures on a quiet queue, short enough to forget an outage that is over. */
export const SICK_WINDOW_MS = 30_000

/** 10 % of successes (Google SRE's per-client ratio): a fleet of any size is then bounded to 10 % too. */
export const BUDGET_RATIO = 0.1
/** 10/s floor (Finagle): a consumer that has no successes yet must still be able to retry. */
export const BUDGET_FLOOR_PER_SECOND = 10
/** 10 s of the floor: what may be saved up in calm times. */
export const BUDGET_BURST = 100
/** 100 retries/s at most, whatever the ratio allows. */
export const BUDGET_RATE_PER_SECOND = 100
/** Retries over the budget come back 10 at a time, one batch a second: the floor rate, so that they fit in it. */
export const RELEASE_BATCH = 10
export const RELEASE_INTERVAL_MS = 1_000

/** Slow start from 10: more in flight than most handlers ever need, far below what melts a dependency. */
export const LIMIT_START = 10
export const LIMIT_MIN = 1
/** x0.7 on trouble: the value of the fleet model; 0.5 gives away throughput, 0.9 reacts too slowly. */
export const LIMIT_DECREASE = 0.7
/** An attempt that takes half of its timeout is late: K <= μ·T·0.5 is the safe side of K <= μ·T. */
export const LATE_SHARE = 0.5

/** The same failure three times is not chance. */
export const POISON_REPEATS = 3
/** 1 day: failures further apart are separate incidents. */
export const POISON_WINDOW_MS = 86_400_000
/** Handed out for the third time without a word: two processes died with it in hand. */
export const SUSPECT_DELIVERIES = 3
/** And three more died with nothing else in hand: it is the message. */
export const TRIALS = 3

/** 100 alike dead letters at once are an incident; more would only empty the source into the dead-letter queue. */
export const FLOOD_BURST = 100
/** Then one a second: someone has been alerted, and a source of truly bad messages still drains. */
export const FLOOD_PER_MINUTE = 60
/** 64 signatures watched at once; the one idle longest is forgotten first. */
export const FLOOD_SIGNATURES = 64

/** A dependency may ask us to wait a day at most; more is a mistake in its header. */
export const PUSHBACK_MAX_MS = 86_400_000
/** +10 %: those who were told the same time should not come back at the same moment. */
export const PUSHBACK_JITTER = 0.1
