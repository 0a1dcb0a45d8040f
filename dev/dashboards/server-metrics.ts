/** The metrics of the server that the dashboards use, with their labels. A test compares them with those of the server. */
export type ServerLabel =
  | 'source'
  | 'class'
  | 'outcome'
  | 'role'
  | 'broker'
  | 'operation'
  | 'status'
  | 'alertname'

const SOURCE = ['source'] as const

export const SERVER_LABELS = {
  redrive_database_up: [],
  redrive_dead_letters: ['source', 'class'],
  redrive_oldest_dead_letter_age_seconds: SOURCE,
  redrive_dead_letters_expiring: SOURCE,
  redrive_set_aside_messages: SOURCE,
  redrive_last_ingest_timestamp_seconds: SOURCE,
  redrive_broker_dead_letters: SOURCE,
  redrive_broker_lag: SOURCE,
  redrive_broker_up: ['source', 'broker'],
  redrive_broker_missing_queues: SOURCE,
  redrive_replaying_dead_letters: SOURCE,
  redrive_undecided_dead_letters: SOURCE,
  redrive_replay_mismatches_total: SOURCE,
  redrive_replay_items_total: ['source', 'outcome'],
  redrive_background_jobs_total: ['role', 'outcome'],
  redrive_refused_credentials_total: [],
  redrive_http_request_duration_seconds: ['operation', 'status'],
  /** Metrics of Prometheus when it evaluates ops/prometheus/redrive.rules.yaml. */
  ALERTS: ['alertname'],
} as const satisfies Readonly<Record<string, readonly ServerLabel[]>>

export type ServerMetric = keyof typeof SERVER_LABELS

/** Metrics of the catalog. Each process of the server exports the same values, so they are never added. */
export const OF_CATALOG: ReadonlySet<string> = new Set<ServerMetric>([
  'redrive_dead_letters',
  'redrive_oldest_dead_letter_age_seconds',
  'redrive_dead_letters_expiring',
  'redrive_set_aside_messages',
  'redrive_replaying_dead_letters',
  'redrive_undecided_dead_letters',
  'redrive_replay_mismatches_total',
  'redrive_replay_items_total',
])
