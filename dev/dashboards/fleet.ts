import { BREAKER_STATES, HEALTH } from './consumer.ts'
import { chart, type Dashboard, number } from './panel.ts'
import { queriesFor } from './query.ts'

const { gauge, quantile, rate, series } = queriesFor([])
const failed = rate('redrive.consumer.failure', ['source'])
const succeeded = rate('redrive.consumer.success', ['source'])
const OF_SERVERS = '* on (instance) group_left () redrive_build_info'

/** Where to look first. */
export const FLEET: Dashboard = {
  name: 'fleet',
  title: 'Redrive fleet',
  meaning: 'All sources, consumers, emitters and servers: what needs a person, and where.',
  variables: [],
  sections: [
    {
      title: 'Now',
      panels: [
        number(
          'Open dead letters',
          'count',
          'Dead letters that need a decision, in all sources.',
          gauge('sum', 'redrive_dead_letters', []),
          { redFrom: 100 },
        ),
        number(
          'Oldest',
          'seconds',
          'Time since the last failure of the oldest open dead letter.',
          gauge('max', 'redrive_oldest_dead_letter_age_seconds', []),
          { redFrom: 1_800 },
        ),
        number(
          'Consumers not up',
          'count',
          'Consumers with a process that is degraded or down.',
          `count(${gauge('min', 'redrive.consumer.health', ['source', 'handler'])} < 2) or vector(0)`,
          { redFrom: 1 },
        ),
        number(
          'Open breakers',
          'count',
          'Dependencies with an open or isolated breaker. Their consumers wait.',
          `count(${gauge('max', 'redrive.circuit_breaker.state', ['dependency'])} >= 2) or vector(0)`,
          { redFrom: 1 },
        ),
        number(
          'Being replayed',
          'count',
          'Dead letters of replay runs in progress.',
          gauge('sum', 'redrive_replaying_dead_letters', []),
        ),
        number(
          'Need a person',
          'count',
          'Set-aside messages, and replays with an unknown outcome.',
          `${gauge('sum', 'redrive_set_aside_messages', [])} + ${gauge('sum', 'redrive_undecided_dead_letters', [])}`,
          { redFrom: 1 },
        ),
      ],
    },
    {
      title: 'Sources',
      panels: [
        chart('Open dead letters', 'count', 'The ten sources with the most open dead letters.', {
          '{{source}}': `topk(10, ${gauge('sum', 'redrive_dead_letters', ['source'])})`,
        }),
        chart('New dead letters', 'perSecond', 'Messages that consumers gave up or quarantined.', {
          '{{source}}': rate('redrive.dlq.saved', ['source']),
          'quarantined {{source}}': rate('redrive.dlq.quarantined', ['source']),
        }),
        chart(
          'Oldest dead letter',
          'seconds',
          'The ten sources whose open dead letters wait the longest.',
          {
            '{{source}}': `topk(10, ${gauge('max', 'redrive_oldest_dead_letter_age_seconds', ['source'])})`,
          },
        ),
        chart('Messages that wait', 'count', 'Messages that wait for the consumers of a source.', {
          '{{source}}': `topk(10, ${gauge('max', 'redrive_broker_lag', ['source'])})`,
        }),
      ],
    },
    {
      title: 'Consumers and emitters',
      panels: [
        chart('Handled messages', 'perSecond', 'Successful runs of the handlers.', {
          '{{source}}': succeeded,
        }),
        chart('Failed share', 'share', 'Failed runs among all runs.', {
          '{{source}}': `${failed} / (${failed} + ${succeeded})`,
        }),
        chart(
          'Health',
          'count',
          'The lowest health of the processes of a consumer.',
          {
            '{{source}} {{handler}}': gauge('min', 'redrive.consumer.health', [
              'source',
              'handler',
            ]),
          },
          { states: HEALTH },
        ),
        chart(
          'Circuit breakers',
          'count',
          'Breakers of the dependencies of handlers, and of the sinks of emitters.',
          {
            '{{dependency}}': gauge('max', 'redrive.circuit_breaker.state', ['dependency']),
            'sink {{sink}}': gauge('max', 'redrive.emitter.breaker_state', ['sink']),
          },
          { states: BREAKER_STATES },
        ),
        chart(
          'Events not delivered',
          'perSecond',
          'Events that their sink did not accept: stored, dropped or lost.',
          {
            '{{sink}} {{result}}': rate(
              'redrive.emitter.event',
              ['sink', 'result'],
              'result!="delivered"',
            ),
          },
        ),
        chart(
          'Alerts',
          'count',
          'Pending and firing alerts of ops/prometheus/redrive.rules.yaml.',
          {
            '{{alertname}}': `count by (alertname) (${series('ALERTS', 'alertname=~"Redrive.*"')})`,
          },
        ),
      ],
    },
    {
      title: 'Servers',
      panels: [
        chart('Requests', 'perSecond', 'Requests to the API, by status.', {
          '{{status}}': `sum by (status) (rate(redrive_http_request_duration_seconds_count[$__rate_interval]))`,
        }),
        chart(
          'Duration of requests',
          'seconds',
          '99th percentile by operation. Users notice 1 s.',
          {
            '{{operation}}': quantile(0.99, 'redrive_http_request_duration_seconds', ['operation']),
          },
        ),
        chart('Background jobs', 'perSecond', 'Jobs of the roles ingest, replay and watch.', {
          '{{role}} {{outcome}}': rate('redrive_background_jobs_total', ['role', 'outcome']),
        }),
        chart(
          'Database and brokers',
          'count',
          'Whether the server reaches its database and the broker of each source.',
          {
            database: gauge('min', 'redrive_database_up', []),
            '{{source}}': gauge('max', 'redrive_broker_up', ['source']),
          },
          { states: ['no', 'yes'] },
        ),
        chart('Memory', 'bytes', 'Resident memory of each process of the server.', {
          '{{instance}}': `process_resident_memory_bytes ${OF_SERVERS}`,
        }),
        chart(
          'Event loop',
          'seconds',
          '99th percentile of the delay of the event loop. Above 0.1 s, a process is overloaded.',
          {
            '{{instance}}': `nodejs_eventloop_lag_p99_seconds ${OF_SERVERS}`,
          },
        ),
      ],
    },
  ],
}
