import type { AlertFacts, AlertSeverity } from '../notice.ts'

/** The alerts of a process without a server. */
export type ProcessAlertKind =
  | 'breaker_open'
  | 'dead_letter'
  | 'quarantined'
  | 'flood'
  | 'hand_off_stuck'
  | 'messages_expired'
  | 'event_lost'
  | 'handlers_hung'
  | 'unproven'
  | 'nothing_assigned'
  | 'disconnected'

/** What all alerts of a kind have in common. `runbook` is the name of a section in docs/runbooks.md. */
interface KindRow {
  readonly severity: AlertSeverity
  readonly runbook: string
}

const KINDS: Readonly<Record<ProcessAlertKind, KindRow>> = {
  breaker_open: { severity: 'critical', runbook: 'RedriveCircuitBreakerOpen' },
  dead_letter: { severity: 'warning', runbook: 'RedriveDeadLettersHigh' },
  quarantined: { severity: 'warning', runbook: 'RedriveQuarantined' },
  flood: { severity: 'critical', runbook: 'RedriveDeadLetterFlood' },
  hand_off_stuck: { severity: 'critical', runbook: 'RedriveDeadLetterWriteFailed' },
  messages_expired: { severity: 'critical', runbook: 'RedriveMessagesExpired' },
  event_lost: { severity: 'critical', runbook: 'RedriveEventsLost' },
  handlers_hung: { severity: 'warning', runbook: 'RedriveHandlersHung' },
  unproven: { severity: 'warning', runbook: 'RedriveMessageUnproven' },
  nothing_assigned: { severity: 'critical', runbook: 'RedriveNothingAssigned' },
  disconnected: { severity: 'critical', runbook: 'RedriveConsumerDisconnected' },
}

/** Something that is wrong now. */
export interface Condition {
  readonly kind: ProcessAlertKind
  readonly source: string
  /** Distinguishes alerts of one kind and source: a handler, a dependency, a signature. Contains no ids of messages. */
  readonly subject: string
  readonly summary: string
  readonly facts: AlertFacts
}

export const severityOf = ({ kind }: Condition): AlertSeverity => KINDS[kind].severity
export const runbookNameOf = ({ kind }: Condition): string => KINDS[kind].runbook
export const PROCESS_ALERT_KINDS = Object.keys(KINDS) as readonly ProcessAlertKind[]
