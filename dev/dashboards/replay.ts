import { chart, type Dashboard, number } from './panel.ts'
import { queriesFor } from './query.ts'

const { count, gauge, quantile, rate } = queriesFor(['source'])
const DONE = 'outcome=~"resolved|failed_again"'

/** Does the replay work, and do the consumers keep up? */
export const REPLAY: Dashboard = {
  name: 'replay',
  title: 'Redrive replay',
  meaning: 'Progress and outcomes of replays, and what they do to the consumers.',
  variables: ['source'],
  sections: [
    {
      title: 'Now',
      panels: [
        number(
          'In progress',
          'count',
          'Dead letters that are being replayed.',
          gauge('sum', 'redrive_replaying_dead_letters', []),
        ),
        number(
          'Resolved',
          'count',
          'Resolved in the shown time.',
          count('redrive_replay_items_total', [], 'outcome="resolved"'),
        ),
        number(
          'Failed again',
          'count',
          'Failed again in the shown time.',
          count('redrive_replay_items_total', [], 'outcome="failed_again"'),
          { redFrom: 1_000 },
        ),
        number(
          'Share resolved',
          'share',
          'Resolved among the replays that were confirmed.',
          `${count('redrive_replay_items_total', [], 'outcome="resolved"')} / (${count('redrive_replay_items_total', [], DONE)} > 0)`,
        ),
        number(
          'Undecided',
          'count',
          'Replays with an unknown outcome. An operator sets it.',
          gauge('sum', 'redrive_undecided_dead_letters', []),
          { redFrom: 1 },
        ),
        number(
          'Mismatches',
          'count',
          'Confirmations with the replay id of another message, in the shown time.',
          count('redrive_replay_mismatches_total', []),
          { redFrom: 1 },
        ),
      ],
    },
    {
      title: 'Progress',
      panels: [
        chart(
          'Outcomes',
          'perSecond',
          'Finished items by outcome. The rate of a run limits them.',
          {
            '{{outcome}}': rate('redrive_replay_items_total', ['outcome']),
          },
        ),
        chart('In progress', 'count', 'Dead letters that are being replayed.', {
          '{{source}}': gauge('max', 'redrive_replaying_dead_letters', ['source']),
        }),
        chart('Open dead letters', 'count', 'The backlog that replays reduce.', {
          '{{source}}': gauge('sum', 'redrive_dead_letters', ['source']),
        }),
        chart('Requests', 'seconds', '95th percentile of the requests about replays.', {
          '{{operation}}': quantile(
            0.95,
            'redrive_http_request_duration_seconds',
            ['operation'],
            'operation=~".*Replay.*"',
          ),
        }),
      ],
    },
    {
      title: 'Consumers during the replay',
      panels: [
        chart(
          'Messages that wait',
          'count',
          'A replay that is too fast makes this grow. Set replay.maxLag to pause it.',
          {
            '{{source}}': gauge('max', 'redrive_broker_lag', ['source']),
          },
        ),
        chart('Runs', 'perSecond', 'Runs of the handlers of the source.', {
          'success {{source}}': rate('redrive.consumer.success', ['source']),
          'failed {{source}}': rate('redrive.consumer.failure', ['source']),
        }),
        chart('New dead letters', 'perSecond', 'Replayed messages that fail again are here, too.', {
          '{{source}} {{reason}}': rate('redrive.dlq.saved', ['source', 'reason']),
        }),
        chart(
          'Background jobs',
          'perSecond',
          'Jobs of the server that publish replays and read their outcomes.',
          {
            '{{role}} {{outcome}}': rate(
              'redrive_background_jobs_total',
              ['role', 'outcome'],
              'role="replay"',
            ),
          },
        ),
      ],
    },
  ],
}
