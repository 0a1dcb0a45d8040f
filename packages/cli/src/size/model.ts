/** The load and the resources of a deployment. */
export interface Load {
  readonly messagesPerDay: number
  /** Share of messages that become dead letters (0–1). */
  readonly failures: number
  /** How long a dead letter is kept, in days. */
  readonly retentionDays: number
  readonly bodyBytes: number
  readonly sources: number
  /** Processes of the server. */
  readonly processes: number
}

/** Whether a number comes from a benchmark, is a limit of the code or a setting, or is an estimate. */
export type Basis = 'measured' | 'limit' | 'estimated'

/** A quantity and the size at which a bottleneck is reached. */
export interface Bottleneck {
  readonly name: string
  readonly used: number
  readonly of: number
  readonly basis: Basis
}

export interface Size {
  readonly deadLettersPerDay: number
  readonly rows: number
  readonly diskBytes: number
  readonly connections: number
  readonly bottlenecks: readonly Bottleneck[]
}

/**
 * 3,000 bytes without the body: 5,000,000 dead letters with 1 KB of JSON and three attempts were 20 GB in the
 * benchmark of the catalog, with all indexes.
 */
const ROW_BYTES = 3_000
/** Largest catalog of a benchmark: with it, 200 requests per second had a p99 of 87.5 ms. */
const ROWS_MEASURED = 5_000_000
/** 142 µs for each dead letter, on two cores that also ran PostgreSQL. */
const INGEST_PER_SECOND = 7_000
/** 281 µs for each replayed dead letter, publish and outcome, on two such cores. */
const REPLAY_PER_SECOND = 3_500
/** Ten times the average: most dead letters come during outages. */
const PEAK = 10
/** `database.connections` and one for health checks. */
const CONNECTIONS_OF_PROCESS = 15
/** Default of PostgreSQL: `max_connections` (100) without those for administrators (3). */
const CONNECTIONS_MAX = 97
/** A third pod: a rollout of the Helm chart adds one to each Deployment of two pods. */
const ROLLOUT = 1.5
/** Sources with separate metrics; further ones are counted as `other`. */
const METRIC_SOURCES = 500
/** The largest replay run. */
const RUN_ITEMS = 100_000
/** The largest partition whose removal was measured: a day of the catalog, in 0.87 s. */
const DAY_MEASURED = 500_000
const DAY_SECONDS = 86_400

/** Computes the size of a deployment. */
export function sizeOf(load: Load): Size {
  const { messagesPerDay, failures, retentionDays, bodyBytes, sources, processes } = load
  const deadLettersPerDay = messagesPerDay * failures
  const rows = deadLettersPerDay * retentionDays
  const connections = processes * CONNECTIONS_OF_PROCESS
  const peak = (deadLettersPerDay / DAY_SECONDS) * PEAK
  return {
    deadLettersPerDay,
    rows,
    diskBytes: rows * (ROW_BYTES + bodyBytes),
    connections,
    // biome-ignore format: one row per bottleneck, to be read as a table
    bottlenecks: [
      { name: 'dead letters in the catalog', used: rows, of: ROWS_MEASURED, basis: 'measured' },
      { name: 'dead letters of a day', used: deadLettersPerDay, of: DAY_MEASURED, basis: 'measured' },
      { name: 'ingest per second, peak', used: peak, of: INGEST_PER_SECOND, basis: 'estimated' },
      { name: 'replay of a peak hour, per second', used: peak, of: REPLAY_PER_SECOND, basis: 'estimated' },
      { name: 'dead letters of a day in one replay run', used: deadLettersPerDay, of: RUN_ITEMS, basis: 'limit' },
      { name: 'sources with separate metrics', used: sources, of: METRIC_SOURCES, basis: 'limit' },
      { name: 'connections to PostgreSQL in a rollout', used: Math.ceil(processes * ROLLOUT) * CONNECTIONS_OF_PROCESS, of: CONNECTIONS_MAX, basis: 'limit' },
    ],
  }
}
