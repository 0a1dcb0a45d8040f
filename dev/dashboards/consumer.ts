import { chart, type Dashboard } from './panel.ts'
import { queriesFor } from './query.ts'

const { count, gauge, quantile, rate } = queriesFor(['source', 'handler', 'dependency'])
const WHO = ['source', 'handler'] as const
const NAME = '{{source}} {{handler}}'

export const BREAKER_STATES: readonly string[] = ['closed', 'half-open', 'open', 'isolated']
export const HEALTH: readonly string[] = ['down', 'degraded', 'up']

/** Is it the handler, its dependency, or the broker? */
export const CONSUMER: Dashboard = {
  name: 'consumer',
  title: 'Redrive consumer',
  meaning: 'The work of the handlers of a source, and the reasons that slow them.',
  variables: ['source', 'handler', 'dependency'],
  sections: [
    {
      title: 'Runs of the handler',
      panels: [
        chart(
          'Runs',
          'perSecond',
          'Successful and failed runs. Failures during an outage are normal: they are retried.',
          {
            'success {{source}}': rate('redrive.consumer.success', ['source']),
            'failed {{source}} {{class}}': rate('redrive.consumer.failure', ['source', 'class']),
          },
        ),
        chart(
          'Duration',
          'seconds',
          'Time of a run with decoding, schema and inbox. Compare it with the timeout of the handler.',
          {
            'p50 {{source}}': quantile(0.5, 'redrive.process.duration', ['source']),
            'p95 {{source}}': quantile(0.95, 'redrive.process.duration', ['source']),
            'p99 {{source}}': quantile(0.99, 'redrive.process.duration', ['source']),
          },
        ),
        chart('Failures by type', 'perSecond', 'Failed runs by the type of their error.', {
          '{{class}} {{error_type}}': rate('redrive.consumer.failure', ['class', 'error_type']),
        }),
        chart(
          'Health',
          'count',
          'The lowest health of the processes of a consumer.',
          {
            [NAME]: gauge('min', 'redrive.consumer.health', WHO),
          },
          { states: HEALTH },
        ),
      ],
    },
    {
      title: 'Retries and dead letters',
      panels: [
        chart('Retries', 'perSecond', 'Scheduled retries, in the process or on the broker.', {
          '{{class}} {{where}}': rate('redrive.retry.attempt', ['class', 'where']),
          'over the budget': rate('redrive.retry.rate_limited', []),
        }),
        chart(
          'Handled after a retry',
          'perSecond',
          'Messages that a retry saved, and messages that reached a limit.',
          {
            'handled {{source}}': rate('redrive.retry.success', ['source']),
            'limit {{reason}}': rate('redrive.retry.exhausted', ['reason']),
            'terminal {{class}}': rate('redrive.retry.permanent_failure', ['class']),
          },
        ),
        chart('Dead letters', 'perSecond', 'Messages that were given up, with the reason.', {
          '{{reason}} {{class}}': rate('redrive.dlq.saved', ['reason', 'class']),
        }),
        chart('Quarantined', 'count', 'Suspected poison messages in the shown time.', {
          '{{source}} {{reason}}': count('redrive.dlq.quarantined', ['source', 'reason']),
        }),
        chart(
          'Runs before a dead letter',
          'count',
          'Median of the failed runs of a message that was given up.',
          {
            [NAME]: quantile(0.5, 'redrive.dlq.attempts', WHO),
          },
        ),
        chart(
          'Cause not known',
          'seconds',
          'Age of the oldest message that fails without a known cause. Above 30 min an alert fires.',
          {
            [NAME]: gauge('max', 'redrive.consumer.unproven_age', WHO),
          },
        ),
      ],
    },
    {
      title: 'Capacity',
      panels: [
        chart(
          'Concurrency',
          'count',
          'Runs in progress, and the runs that adaptive concurrency and breaker allow.',
          {
            'running {{source}}': gauge('sum', 'redrive.consumer.running', ['source']),
            'limit {{source}}': gauge('sum', 'redrive.consumer.concurrency_limit', ['source']),
          },
        ),
        chart(
          'Messages in the process',
          'count',
          'Messages that wait for a slot, and decisions that the broker has not confirmed.',
          {
            'waiting {{source}}': gauge('sum', 'redrive.consumer.waiting', ['source']),
            'settling {{source}}': gauge('sum', 'redrive.consumer.settling', ['source']),
            'hung {{source}}': gauge('sum', 'redrive.consumer.hung', ['source']),
          },
        ),
        chart('Lag', 'count', 'Messages of the source that wait for the consumers.', {
          'at the broker {{source}}': gauge('max', 'redrive_broker_lag', ['source']),
        }),
        chart('Pauses', 'count', 'Pauses in the shown time, by reason.', {
          '{{source}} {{reason}}': count('redrive.consumer.paused', ['source', 'reason']),
        }),
      ],
    },
    {
      title: 'Dependencies and broker',
      panels: [
        chart(
          'Circuit breakers',
          'count',
          'The highest state among the processes.',
          {
            '{{dependency}}': gauge('max', 'redrive.circuit_breaker.state', ['dependency']),
          },
          { states: BREAKER_STATES },
        ),
        chart(
          'Calls of dependencies',
          'perSecond',
          'Runs that call the dependency, failed runs, and messages that the open breaker held.',
          {
            'calls {{dependency}}': rate('redrive.circuit_breaker.call', ['dependency']),
            'failed {{dependency}}': rate('redrive.circuit_breaker.failure', ['dependency']),
            'held {{dependency}}': rate('redrive.circuit_breaker.rejected', ['dependency']),
          },
        ),
        chart(
          'Connected processes',
          'count',
          'Processes of the consumer with a connection to the broker.',
          {
            [NAME]: gauge('sum', 'redrive.consumer.connected', WHO),
          },
        ),
        chart(
          'Partitions',
          'count',
          'Partitions that the consumer has. Only for brokers with partitions, such as Kafka.',
          {
            [NAME]: gauge('sum', 'redrive.consumer.assigned', WHO),
          },
        ),
        chart(
          'Exceptional events',
          'count',
          'Events that a healthy system does not have. Each one is in the log of the process.',
          {
            'connection lost {{source}}': count('redrive.consumer.connection_lost', ['source']),
            'expired {{source}}': count('redrive.consumer.messages_expired', ['source']),
            'copy not stored {{source}}': count('redrive.dlq.write_failed', ['source']),
            'headers unreadable {{source}}': count('redrive.consumer.headers_unreadable', [
              'source',
            ]),
            'user code threw {{source}} {{where}}': count('redrive.consumer.user_code_failed', [
              'source',
              'where',
            ]),
          },
        ),
      ],
    },
  ],
}
