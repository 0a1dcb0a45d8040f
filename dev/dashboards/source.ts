import { chart, type Dashboard, number } from './panel.ts'
import { queriesFor } from './query.ts'

const { count, gauge, rate, series } = queriesFor(['source'])

/** Shows how many messages wait, why they failed, and whether the number falls. */
export const SOURCE: Dashboard = {
  name: 'source',
  title: 'Redrive source',
  meaning: 'The dead letters of a queue or topic, from the broker to their outcome.',
  variables: ['source'],
  sections: [
    {
      title: 'Now',
      panels: [
        number(
          'Open dead letters',
          'count',
          'Dead letters that need a decision.',
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
          'Expiring',
          'count',
          'Open dead letters that retention deletes within 7 days.',
          gauge('sum', 'redrive_dead_letters_expiring', []),
          { redFrom: 1 },
        ),
        number(
          'Set aside',
          'count',
          'Messages that could not be catalogued.',
          gauge('sum', 'redrive_set_aside_messages', []),
          { redFrom: 1 },
        ),
        number(
          'Undecided',
          'count',
          'Replays with an unknown outcome. An operator sets it.',
          gauge('sum', 'redrive_undecided_dead_letters', []),
          { redFrom: 1 },
        ),
        number(
          'Missing queues',
          'count',
          'Queues or topics of the source that do not exist.',
          gauge('max', 'redrive_broker_missing_queues', []),
          { redFrom: 1 },
        ),
      ],
    },
    {
      title: 'Dead letters',
      panels: [
        chart(
          'Open by class',
          'count',
          'A transient class means an outage: wait for the dependency, then replay.',
          {
            '{{class}}': gauge('sum', 'redrive_dead_letters', ['class']),
          },
        ),
        chart('New by reason', 'perSecond', 'Messages that consumers gave up.', {
          '{{source}} {{reason}}': rate('redrive.dlq.saved', ['source', 'reason']),
        }),
        chart(
          'New by type of error',
          'count',
          'Dead letters in the shown time, by the type of their error.',
          {
            '{{class}} {{error_type}}': count('redrive.dlq.saved', ['class', 'error_type']),
          },
        ),
        chart(
          'Quarantined and floods',
          'count',
          'Suspected poison, and floods of similar dead letters, in the shown time.',
          {
            'quarantined {{source}}': count('redrive.dlq.quarantined', ['source']),
            'flood {{source}}': count('redrive.dlq.flood', ['source']),
          },
        ),
      ],
    },
    {
      title: 'Broker and ingest',
      panels: [
        chart(
          'Waiting in the broker',
          'count',
          'Messages that wait for the consumers, and dead letters that wait for the ingest.',
          {
            'for consumers {{source}}': gauge('max', 'redrive_broker_lag', ['source']),
            'for the ingest {{source}}': gauge('max', 'redrive_broker_dead_letters', ['source']),
          },
        ),
        chart(
          'Broker reachable',
          'count',
          'The server reached the broker at its last check.',
          {
            '{{source}} {{broker}}': gauge('max', 'redrive_broker_up', ['source', 'broker']),
          },
          { states: ['no', 'yes'] },
        ),
        chart(
          'Last ingest',
          'seconds',
          'Time since the last dead letter of the source was ingested.',
          {
            '{{source}}': `time() - max by (source) (${series('redrive_last_ingest_timestamp_seconds')})`,
          },
        ),
        chart('Consumers', 'perSecond', 'Runs of the handlers of the source.', {
          'success {{source}}': rate('redrive.consumer.success', ['source']),
          'failed {{source}}': rate('redrive.consumer.failure', ['source']),
        }),
      ],
    },
    {
      title: 'Replays',
      panels: [
        chart('In progress', 'count', 'Dead letters that are being replayed.', {
          '{{source}}': gauge('max', 'redrive_replaying_dead_letters', ['source']),
        }),
        chart('Outcomes', 'count', 'Replayed dead letters in the shown time, by outcome.', {
          '{{outcome}}': count('redrive_replay_items_total', ['outcome']),
        }),
      ],
    },
  ],
}
