import type { Output } from '@redrive/api'
import { countOf, countText } from './numbers.ts'

type Source = Output<'listSources'>['sources'][number]

/** Names of the kinds of brokers and stores in the config. */
const BROKER_NAMES: Readonly<Record<string, string>> = {
  bullmq: 'BullMQ',
  fileStore: 'file store',
  kafka: 'Kafka',
  nats: 'NATS JetStream',
  postgres: 'PostgreSQL outbox',
  postgresStore: 'PostgreSQL store',
  rabbitmq: 'RabbitMQ',
  redis: 'Redis Streams',
  redisStore: 'Redis store',
  sqs: 'SQS',
}

/** Returns the name of the broker of a source. A newer server may know other kinds. */
export const brokerText = ({ broker }: Pick<Source, 'broker'>): string | undefined =>
  broker === undefined ? undefined : (BROKER_NAMES[broker] ?? broker)

/** Problems first. Sources that no process checks are between them and the connected ones. */
const RANK = { unreachable: 0, missing_queue: 1, not_checked: 2, connected: 3 } as const

/** Returns the sources with problems first, then those with the most open dead letters. */
export const bySeverity = (sources: readonly Source[]): readonly Source[] =>
  sources.toSorted(
    (one, other) =>
      RANK[one.state.status] - RANK[other.state.status] ||
      other.open - one.open ||
      one.source.localeCompare(other.source),
  )

export interface SourceProblem {
  readonly key: string
  readonly tone: 'bad' | 'warn'
  readonly title: string
  readonly detail: string
}

/** Returns the problems: one for each source that is not ingested, and one for all sources that are not checked. */
export function problemsOf(sources: readonly Source[]): readonly SourceProblem[] {
  const broken = bySeverity(sources).filter(({ state }) => RANK[state.status] < RANK.not_checked)
  const unchecked = sources.filter(({ state }) => state.status === 'not_checked')
  const [first] = unchecked
  return [
    ...broken.map(({ source, state }) => ({
      key: source,
      tone: 'bad' as const,
      title: `Ingest of ${source} stopped.`,
      detail: state.problem ?? '',
    })),
    ...(first === undefined
      ? []
      : [
          {
            key: ' unchecked',
            tone: 'warn' as const,
            title: uncheckedTitle(unchecked, sources.length),
            detail: first.state.problem ?? '',
          },
        ]),
  ]
}

/** 5 names: more are in the table below. */
const NAMES_MAX = 5

function uncheckedTitle(unchecked: readonly Source[], total: number): string {
  if (unchecked.length === total && total > 1) return `No source of ${countText(total)} is checked.`
  const names = unchecked.slice(0, NAMES_MAX).map(({ source }) => source)
  const more = unchecked.length - names.length
  const list = [...names, ...(more > 0 ? [`${countText(more)} more`] : [])].join(', ')
  return `${countOf(unchecked.length, 'source')} ${unchecked.length === 1 ? 'is' : 'are'} not checked: ${list}.`
}

/** Returns what expired of a day: 12 open, 3 resolved. */
export const expiredText = (byStatus: Readonly<Record<string, number>>): string =>
  Object.entries(byStatus)
    .filter(([, count]) => count > 0)
    .map(([status, count]) => `${countText(count)} ${status.replaceAll('_', ' ')}`)
    .join(', ')
