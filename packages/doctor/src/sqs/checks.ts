import { formatDuration } from '@redrive/core'
import { type Check, type CheckHit, nothingCheck, unreadableCheck } from '../finding.ts'
import type { SqsFacts, SqsQueueFacts, SqsSourceFacts } from './facts.ts'
import { deadLettersOf } from './read.ts'

/** 14 days, the limit of SQS. */
const LONGEST_RETENTION_S = 1_209_600
const MS_PER_SECOND = 1_000

/** Both queues of a source. */
interface Pair {
  readonly queue: SqsQueueFacts
  readonly deadLetters: SqsQueueFacts
}

const pairsIn = ({ sources }: SqsFacts): readonly Pair[] =>
  sources.flatMap(({ queue, deadLetters }) =>
    queue === undefined || deadLetters === undefined ? [] : [{ queue, deadLetters }],
  )

const existing = ({ sources }: SqsFacts): readonly SqsQueueFacts[] =>
  sources.flatMap(({ queue }) => queue ?? [])

const isFifo = ({ name }: Pick<SqsSourceFacts, 'name'>) => name.endsWith('.fifo')

const SET = 'aws sqs set-queue-attributes --queue-url {url} --attributes'

const durationOf = (ms: number) => formatDuration(ms)

/** All checks of SQS. */
export const SQS_CHECKS: readonly Check<SqsFacts>[] = [
  unreadableCheck('sqs'),
  nothingCheck(
    'sqs',
    'set the queues: option "queues", or sqs://REGION?queue=QUEUE',
    ({ sources, unreadable }) => sources.length === 0 && unreadable.length === 0,
  ),
  {
    id: 'sqs.dead-letter-retention',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a dead-letter queue that keeps messages no longer than its standard queue',
    why: 'A message that SQS moves keeps its time of sending. A message that waited in the source is deleted soon after the move, or immediately.',
    fix: `${SET} MessageRetentionPeriod=${LONGEST_RETENTION_S}`,
    hits: (facts) =>
      pairsIn(facts)
        .filter(({ queue }) => queue.policy !== undefined && !isFifo(queue))
        .flatMap(({ queue, deadLetters }): readonly CheckHit[] => {
          const [of, dead] = [queue.retentionMs, deadLetters.retentionMs]
          if (of === undefined || dead === undefined || dead > of) return []
          // Both have the maximum: only shorter retention of the source can improve that.
          if (of >= LONGEST_RETENTION_S * MS_PER_SECOND) return []
          const found = `kept ${durationOf(dead)}; in ${queue.name} ${durationOf(of)}`
          return [{ subject: deadLetters.name, found, fill: { url: deadLetters.url } }]
        }),
  },
  {
    id: 'sqs.visibility',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'a queue whose visibility timeout is below the timeout of handlers',
    why: 'Functions of AWS Lambda and plain consumers get a message a second time while its handler runs. A consumer of sqs() sets its lease instead.',
    fix: `${SET} VisibilityTimeout={wanted}`,
    hits: (facts) =>
      existing(facts).flatMap(({ name, url, visibilityMs }) =>
        visibilityMs === undefined || visibilityMs >= facts.expects.handlerTimeoutMs
          ? []
          : {
              subject: name,
              found: `visibility timeout ${durationOf(visibilityMs)}, handlers ${durationOf(facts.expects.handlerTimeoutMs)}`,
              fill: { url, wanted: Math.ceil(facts.expects.handlerTimeoutMs / MS_PER_SECOND) },
            },
      ),
  },
  {
    id: 'sqs.queue-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a missing source queue',
    why: 'No producer and no consumer can use it.',
    fix: 'correct the name, the region or the account; or aws sqs create-queue --queue-name {subject}',
    hits: ({ sources }) =>
      sources
        .filter(({ queue }) => queue === undefined)
        .map(({ name }) => ({ subject: name, found: 'does not exist' })),
  },
  {
    id: 'sqs.dead-letter-queue-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a missing dead-letter queue',
    why: 'Dead letters cannot be stored: they stay in flight, and the consumer stops.',
    fix: 'start a consumer, which creates {wanted:text}; create the queue that a redrive policy names',
    hits: ({ sources }) =>
      sources.flatMap(({ name, queue, deadLetters }) =>
        queue === undefined || deadLetters !== undefined
          ? []
          : {
              subject: queue.policy?.deadLetters ?? deadLettersOf(name),
              found: 'does not exist',
              fill: { wanted: deadLettersOf(name) },
            },
      ),
  },
  {
    id: 'sqs.dead-letter-size',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a dead-letter queue with a smaller maximum message size than its queue',
    why: 'The copy of a large message is rejected: the message stays in flight, and the consumer stops.',
    fix: `${SET} MaximumMessageSize={wanted}`,
    hits: (facts) =>
      pairsIn(facts).flatMap(({ queue, deadLetters }) =>
        (deadLetters.maxBytes ?? 0) >= (queue.maxBytes ?? 0)
          ? []
          : {
              subject: deadLetters.name,
              found: `at most ${deadLetters.maxBytes} bytes; ${queue.name} ${queue.maxBytes}`,
              fill: { url: deadLetters.url, wanted: queue.maxBytes ?? 0 },
            },
      ),
  },
  {
    id: 'sqs.fifo-without-policy',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a FIFO queue without a redrive policy',
    why: 'SQS counts returns of a FIFO queue like crashes, so Redrive cannot count crashes. A message that crashes its consumer blocks its group until it expires.',
    fix: `${SET} '{"RedrivePolicy":"…"}', with the ARN of {wanted:text} and a maxReceiveCount of 1000`,
    hits: (facts) =>
      existing(facts)
        .filter((queue) => isFifo(queue) && queue.policy === undefined)
        .map(({ name, url }) => ({
          subject: name,
          found: 'no redrive policy',
          fill: { url, wanted: deadLettersOf(name) },
        })),
  },
  {
    id: 'sqs.dead-letter-policy',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a dead-letter queue that has a redrive policy, too',
    why: 'Each read of a control plane counts. After maxReceiveCount reads SQS moves the dead letter to a queue that Redrive does not drain.',
    fix: `${SET} RedrivePolicy=`,
    hits: (facts) =>
      pairsIn(facts).flatMap(({ deadLetters: { name, url, policy } }) =>
        policy === undefined
          ? []
          : {
              subject: name,
              found: `moves to ${policy.deadLetters} after ${policy.maxReceives} reads`,
              fill: { url },
            },
      ),
  },
  {
    id: 'sqs.max-receives',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a redrive policy whose maxReceiveCount is below the crash limit of Redrive',
    why: 'A crash counts for every message in flight: SQS moves good messages with the bad one, before Redrive can quarantine it.',
    fix: 'raise maxReceiveCount in RedrivePolicy of {subject} to at least {wanted}',
    hits: (facts) =>
      existing(facts).flatMap(({ name, policy }) =>
        policy === undefined || policy.maxReceives >= facts.expects.crashLimit
          ? []
          : {
              subject: name,
              found: `maxReceiveCount ${policy.maxReceives}, crash limit ${facts.expects.crashLimit}`,
              fill: { wanted: facts.expects.crashLimit },
            },
      ),
  },
  {
    id: 'sqs.content-deduplication',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a FIFO queue with content-based deduplication',
    why: 'SQS drops a message with the same body as one of the last 5 minutes, even if its attributes differ and the earlier one is handled.',
    fix: `let producers set MessageDeduplicationId; then ${SET} ContentBasedDeduplication=false`,
    hits: (facts) =>
      existing(facts)
        .filter(({ isDeduplicatedByBody }) => isDeduplicatedByBody)
        .map(({ name, url }) => ({
          subject: name,
          found: 'ContentBasedDeduplication=true',
          fill: { url },
        })),
  },
]
