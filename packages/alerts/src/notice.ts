import type { FailureClass } from '@redrive/core'

export type AlertSeverity = 'warning' | 'critical'

/** One alert that began or ended, for every channel. */
export interface AlertNotice {
  /** Identifies the condition. It is the same when the alert begins, ends and begins again, in every process. */
  readonly key: string
  /** Identifies this occurrence. It is new when an ended alert begins again. */
  readonly id: string
  readonly status: 'firing' | 'resolved'
  /** Machine-readable name of the condition, such as `breaker_open`. */
  readonly kind: string
  readonly severity: AlertSeverity
  /** One sentence. */
  readonly summary: string
  readonly source: string
  /** When it began, epoch ms. */
  readonly startedAt: number
  /** When it began or ended, epoch ms. */
  readonly at: number
  readonly facts: AlertFacts
  /** Page of the console. */
  readonly link?: string
  /** Section of the runbooks. */
  readonly runbook?: string
}

/** The known facts about the cause. Texts of messages appear only in `error`. */
export interface AlertFacts {
  /** Type of the message, when the producer names one. */
  readonly eventType?: string
  /** Name of the consumer. */
  readonly handler?: string
  /** Dependency, sink or queue. */
  readonly target?: string
  readonly class?: FailureClass
  /** Machine-readable code of the error. */
  readonly code?: string
  readonly error?: string
  readonly reason?: string
  readonly attempts?: number
  /** Number of messages. */
  readonly count?: number
  readonly ageMs?: number
  readonly messageId?: string
  /** Failure group in the catalog. */
  readonly group?: string
  /** Host that sent the alert. */
  readonly host?: string
  /** Share of a group in its source, from 0 to 1. */
  readonly share?: number
  /** Open dead letters of the source. */
  readonly depth?: number
  /** Dead letters that retention deletes soon. */
  readonly expiring?: number
  /** When the first of them expires, epoch ms. */
  readonly nextExpiryAt?: number
}

/** Where Redrive publishes its runbooks. */
const RUNBOOKS = 'https://github.com/redrive/redrive/blob/main/docs/runbooks.md'

/** Returns the URL of the section with this name. */
export const runbookOf = (name: string): string => `${RUNBOOKS}#${name.toLowerCase()}`

const asText = (value: string | number) => String(value)

/** The facts that people read, in this order. */
const SHOWN: readonly (readonly [
  fact: keyof AlertFacts,
  label: string,
  text: (value: never) => string,
])[] = [
  ['eventType', 'Event type', asText],
  ['handler', 'Consumer', asText],
  ['target', 'Target', asText],
  ['class', 'Class', asText],
  ['code', 'Code', asText],
  ['reason', 'Reason', asText],
  ['attempts', 'Attempts', asText],
  ['count', 'Messages', asText],
  ['ageMs', 'Age', ageText],
  ['messageId', 'Message', asText],
  ['host', 'Host', asText],
  ['error', 'Error', asText],
]

/** Returns the facts that people read, with their labels. */
export function shownFacts({ source, facts }: AlertNotice): readonly (readonly [string, string])[] {
  const known = SHOWN.flatMap(([fact, label, text]): readonly (readonly [string, string])[] => {
    const value = facts[fact]
    return value === undefined ? [] : [[label, oneLine(text(value as never))]]
  })
  return [['Source', oneLine(source)], ...known]
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const

/** Returns a duration in its largest unit: `31 min`. */
function ageText(ms: number): string {
  const [unit, size] = UNITS.find(([, one]) => ms >= one) ?? ['s', 1_000]
  return `${Math.floor(ms / size)} ${unit}`
}

/** Returns the first line of a message: whether the alert began or ended, and its summary. */
export const titleOf = ({ status, severity, summary }: AlertNotice): string =>
  `${status === 'resolved' ? 'Resolved' : SEVERITY_TEXT[severity]}: ${oneLine(summary)}`

/** Returns a text in one line. Line breaks in a text of a message would look like other lines of the alert. */
export const oneLine = (text: string): string =>
  text.replaceAll(/[\s\p{Cc}\p{Bidi_Control}]+/gu, ' ')

const SEVERITY_TEXT: Readonly<Record<AlertSeverity, string>> = {
  warning: 'Warning',
  critical: 'Critical',
}

/** Returns the title of a message with several alerts. */
export function headlineOf(notices: readonly AlertNotice[]): string {
  const [first] = notices
  if (first !== undefined && notices.length === 1) return titleOf(first)
  const firing = notices.filter(({ status }) => status === 'firing').length
  const counts = [
    ...(firing > 0 ? [firing === 1 ? '1 alert' : `${firing} alerts`] : []),
    ...(firing < notices.length ? [`${notices.length - firing} resolved`] : []),
  ]
  return counts.join(', ')
}

/** Returns the text cut to a limit of a service, in UTF-16 units. It does not cut a character in two. */
export function cut(text: string, max: number): string {
  if (text.length <= max) return text
  const start = text.slice(0, max - 1)
  return `${/[\ud800-\udbff]$/.test(start) ? start.slice(0, -1) : start}…`
}
