import { createHash } from 'node:crypto'
import type { AlertFacts, AlertNotice, AlertSeverity } from '@redrive/alerts'
import { runbookOf } from '@redrive/alerts/internal'
import type { Alert, Catalog, FailureGroup } from '@redrive/catalog'
import { omitUndefined } from '../omit-undefined.ts'
import type { Reading } from '../reading/reading.ts'

type Kind = Alert['kind']

/** The texts of one kind of alert. */
interface Description<One extends Alert> {
  readonly severity: AlertSeverity
  readonly summary: (alert: One, title: string | undefined) => string
  /** Page of the console. */
  readonly path: (alert: One) => string
  /** Name of the section in docs/runbooks.md. */
  readonly runbook: string
}

const groupsOf = ({ source }: Alert) => `/groups?q=${encodeURIComponent(`source:${source}`)}`
const groupPage = ({ group }: { readonly group: string }) => `/groups/${group}`
const titled = (title: string | undefined) => (title === undefined ? '' : `: ${title}`)

// biome-ignore format: one row per kind, to be read as a table
const DESCRIPTIONS: { readonly [K in Kind]: Description<Extract<Alert, { readonly kind: K }>> } = {
  depth: { severity: 'warning', summary: ({ source, depth }) => `${source} has ${depth} open dead letters`, path: groupsOf, runbook: 'RedriveDeadLettersHigh' },
  age: { severity: 'warning', summary: ({ source }) => `The oldest open dead letter of ${source} waits for too long`, path: groupsOf, runbook: 'RedriveOldDeadLetter' },
  expiring: { severity: 'warning', summary: ({ source, expiring }) => `${expiring} open dead letters of ${source} expire soon`, path: groupsOf, runbook: 'RedriveDeadLettersExpiring' },
  set_aside: { severity: 'warning', summary: ({ source, count }) => `${count} messages of ${source} are set aside`, path: () => '/sources/set-aside', runbook: 'RedriveSetAside' },
  replay_mismatch: { severity: 'critical', summary: ({ source }) => `A message in ${source} has the replay id of another message`, path: groupsOf, runbook: 'RedriveReplayMismatch' },
  dominance: { severity: 'warning', summary: ({ source, share }, title) => `One group has ${Math.round(share * 100)} % of the open dead letters of ${source}${titled(title)}`, path: groupPage, runbook: 'RedriveDeadLettersHigh' },
  new_signature: { severity: 'warning', summary: ({ source }, title) => `${source} has a new kind of failure${titled(title)}`, path: groupPage, runbook: 'RedriveNewSignature' },
  regressed: { severity: 'warning', summary: ({ source }, title) => `A resolved failure of ${source} is back${titled(title)}`, path: groupPage, runbook: 'RedriveRegressedSignature' },
}

/**
 * Returns the place of an alert in the order of delivery: 0 for a critical one, which the limit does not hold back. New
 * kinds of failures are last, because there may be many.
 */
export function urgencyOf({ kind }: Alert): number {
  if (DESCRIPTIONS[kind].severity === 'critical') return 0
  return kind === 'new_signature' ? 2 : 1
}

export interface DescribeDeps {
  readonly catalog: Pick<Catalog, 'group' | 'groups' | 'deadLetters'>
  /** Hides personal data in texts of messages. */
  readonly reading: Pick<Reading, 'text'>
  /** URL of the server, for links to the console. */
  readonly publicUrl: string
}

/** An alert without its time, which the database has. */
export type AlertContent = Omit<AlertNotice, 'id' | 'status' | 'startedAt' | 'at'>

/** Returns what people read about an alert, with its cause from the catalog. */
export type DescribeAlert = (alert: Alert) => Promise<AlertContent>

export function createDescribe({ catalog, reading, publicUrl }: DescribeDeps): DescribeAlert {
  const base = publicUrl.replace(/\/+$/, '')
  const { host } = new URL(publicUrl)
  return async (alert) => {
    const { kind, source, ...numbers } = alert
    const { severity, summary, path, runbook } = DESCRIPTIONS[kind] as Description<Alert>
    const group = await groupOf(catalog, alert)
    const title = group === undefined ? undefined : reading.text(group.title)
    const facts = group === undefined ? {} : await factsOf(catalog, reading, group)
    return {
      key: keyOf(host, alert),
      kind,
      severity,
      summary: summary(alert, title),
      source,
      facts: { ...facts, ...numbers },
      link: `${base}${path(alert)}`,
      runbook: runbookOf(runbook),
    }
  }
}

/** Names the server, because two servers may use the same channel. It does not contain numbers, which change. */
function keyOf(host: string, alert: Alert): string {
  const { kind, source } = alert
  const parts = [host, kind, source, ...('group' in alert ? [alert.group] : [])]
  const key = parts.map(encodeURIComponent).join('/')
  return key.length <= KEY_MAX ? key : createHash('sha256').update(key).digest('hex')
}
/** 255: the limit of PagerDuty. */
const KEY_MAX = 255

/** Returns the group of the alert, or the largest one of its source. */
async function groupOf(
  catalog: DescribeDeps['catalog'],
  alert: Alert,
): Promise<FailureGroup | undefined> {
  if ('group' in alert) return catalog.group(alert.group)
  if (!CAUSED_BY_GROUPS.has(alert.kind)) return undefined
  const { groups } = await catalog.groups({
    sources: [alert.source],
    hasOpen: true,
    order: 'open_count',
    limit: 1,
  })
  return groups[0]
}

/** The alerts of a source whose largest group is worth naming. */
const CAUSED_BY_GROUPS: ReadonlySet<Kind> = new Set<Kind>(['depth', 'age', 'expiring'])

/** Returns the facts of the group and of its last open dead letter. */
async function factsOf(
  catalog: DescribeDeps['catalog'],
  { text }: DescribeDeps['reading'],
  { id, handler, class: failureClass, code, firstSeenAt, sample }: FailureGroup,
): Promise<AlertFacts> {
  const { deadLetters } = await catalog.deadLetters({ groups: [id], limit: 1 })
  const [last] = deadLetters
  return omitUndefined({
    eventType: last?.type,
    handler: handler ?? last?.handler,
    target: last?.origin,
    class: failureClass,
    code,
    error: text(last?.message ?? sample),
    attempts: last?.attempts,
    messageId: last?.messageId,
    ageMs: Math.max(0, Date.now() - firstSeenAt),
    group: id,
  })
}
