import { BREAKER_STATES } from './consumer.ts'
import { chart, type Dashboard, number } from './panel.ts'
import { queriesFor } from './query.ts'

const { count, gauge, rate } = queriesFor(['sink'])

/** Do events arrive, and where are the other events? */
export const EMITTER: Dashboard = {
  name: 'emitter',
  title: 'Redrive emitter',
  meaning: 'Events that programs emit, by sink and outcome.',
  variables: ['sink'],
  sections: [
    {
      title: 'Now',
      panels: [
        number(
          'Delivered',
          'count',
          'Events that a sink accepted in the shown time.',
          count('redrive.emitter.event', [], 'result="delivered"'),
        ),
        number(
          'Stored',
          'count',
          'Events in the store, instead of the sink, in the shown time. They can be sent again.',
          count('redrive.emitter.event', [], 'result="stored"'),
          { redFrom: 1_000 },
        ),
        number(
          'Dropped',
          'count',
          'Events that the filter, the rate limit or a full queue dropped.',
          count('redrive.emitter.event', [], 'result="dropped"'),
          { redFrom: 1_000 },
        ),
        number(
          'Lost',
          'count',
          'Events that neither sink nor store accepted. This must be 0.',
          count('redrive.emitter.event', [], 'result="lost"'),
          { redFrom: 1 },
        ),
        number(
          'In flight',
          'count',
          'Events that are queued, wait for a retry or are being sent.',
          gauge('sum', 'redrive.emitter.in_flight', []),
        ),
        number(
          'Over the rate limit',
          'count',
          'Events over the rate limit in the shown time.',
          count('redrive.emitter.rate_limited', []),
          { redFrom: 1_000 },
        ),
      ],
    },
    {
      title: 'Sinks',
      panels: [
        chart('Events', 'perSecond', 'Events by sink and result.', {
          '{{sink}} {{result}}': rate('redrive.emitter.event', ['sink', 'result']),
        }),
        chart('Not delivered', 'perSecond', 'Events that a sink did not accept, with the reason.', {
          '{{sink}} {{result}} {{reason}}': rate('redrive.emitter.failure', [
            'sink',
            'result',
            'reason',
          ]),
        }),
        chart(
          'In flight',
          'count',
          'A queue that grows means that the sink is slower than the program.',
          {
            '{{sink}}': gauge('sum', 'redrive.emitter.in_flight', ['sink']),
          },
        ),
        chart(
          'Circuit breakers',
          'count',
          'While a breaker is open, events go to the store.',
          {
            '{{sink}}': gauge('max', 'redrive.emitter.breaker_state', ['sink']),
          },
          { states: BREAKER_STATES },
        ),
      ],
    },
    {
      title: 'Store and jobs',
      panels: [
        chart(
          'Sent again',
          'perSecond',
          'Stored events that automatic replay sent again, and whether their sink accepted them.',
          {
            'accepted {{sink}}': rate('redrive.dlq.replayed', ['sink']),
            'not accepted {{sink}}': rate('redrive.dlq.replay_failed', ['sink']),
          },
        ),
        chart(
          'Non-failing jobs',
          'count',
          'Events of non-failing jobs that did not arrive, in the shown time.',
          {
            '{{job}} {{result}}': count('redrive.emitter.job_event', ['job', 'result']),
          },
        ),
      ],
    },
  ],
}
