import type { Mutant } from '../hunt.ts'

const ASK = 'packages/transports/postgres/src/ask.ts'
/** Where the last `outbox_turn` is. */
const FUNCTIONS = 'packages/transports/postgres/src/migrations/0003-replays.ts'
const INBOX = 'packages/transports/postgres/src/inbox.ts'
const RECEIVE = 'packages/transports/postgres/src/receive.ts'
const ROWS = 'packages/transports/postgres/src/rows.ts'

const ENTER = `          answer = await enter(query(tx), entry)
          if (answer !== 'handled') throw NOT_NEW
`

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'complete without looking at the token',
    edits: [
      {
        file: FUNCTIONS,
        find: `      from unnest(done, done_tokens) as d (id, token)
      where o.id = any (array[d.id]) and o.lease_token = d.token and`,
        replace: `      from unnest(done, done_tokens) as d (id, token)
      where o.id = any (array[d.id]) and`,
      },
    ],
    scenario: 'stopped',
    breaks: 'not fenced',
  },
  {
    name: 'hand off without looking at the token',
    edits: [
      {
        file: FUNCTIONS,
        find: `reason text, error text)
      where o.id = any (array[d.id]) and o.lease_token = d.token and`,
        replace: `reason text, error text)
      where o.id = any (array[d.id]) and`,
      },
    ],
    scenario: 'stopped',
    breaks: 'not fenced',
  },
  {
    name: 'say until when a lease runs by the clock of the consumer',
    edits: [
      {
        file: FUNCTIONS,
        find: `lease interval := lease_ms * interval '1 millisecond';`,
        replace: `lease interval := to_timestamp(lease_ms / 1000.0) - now();`,
      },
      {
        file: RECEIVE,
        find: '      most,\n      leaseMs,\n',
        replace: '      most,\n      Date.now() + leaseMs,\n',
      },
    ],
    scenario: 'client-clock',
    breaks: 'duplicates over the bound',
  },
  {
    name: 'say when a retry is due by the clock of the consumer',
    edits: [
      {
        file: ROWS,
        find: 'Math.max(0, decision.delayMs)',
        replace: 'Math.max(0, decision.dueAt - Date.now())',
      },
    ],
    scenario: 'client-clock',
    breaks: 'scenario',
  },
  {
    name: 'look only behind the last one that was taken',
    edits: [
      { file: RECEIVE, find: 'isSweep ? NO_FLOOR : this.#floor', replace: 'this.#floor' },
      { file: RECEIVE, find: 'const OVERLAP_MS = 1_000', replace: 'const OVERLAP_MS = 0' },
    ],
    scenario: 'long-transactions',
    breaks: 'not drained',
  },
  {
    name: 'forget that one of the lane is in hand when an earlier one is committed late',
    edits: [
      {
        file: FUNCTIONS,
        find: ' or (first.id <> o.id and first.lease_until >= now())',
        replace: '',
      },
    ],
    scenario: 'long-transactions',
    breaks: 'out of order',
  },
  {
    name: 'remember the key before the transaction',
    edits: [
      {
        file: INBOX,
        find: ENTER,
        replace: `          await transaction(async (other) => {
            answer = await enter(query(other), entry)
          })
          if (answer !== 'handled') throw NOT_NEW
`,
      },
    ],
    scenario: 'kill-random',
    breaks: 'lost',
  },
  {
    name: 'remember the key after the transaction',
    edits: [
      { file: INBOX, find: ENTER, replace: '' },
      {
        file: INBOX,
        find: '      return answer\n',
        replace: `      await transaction(async (tx) => {
        answer = await enter(query(tx), entry)
      })
      return answer
`,
      },
    ],
    scenario: 'kill-at-boundaries',
    breaks: 'effect duplicated',
  },
  {
    name: 'nobody listens for the end of a connection',
    edits: [{ file: ASK, find: "  client.on('error', ignore)\n", replace: '' }],
    scenario: 'cuts',
    breaks: 'not drained',
  },
  {
    name: 'look only when told to',
    edits: [
      {
        file: RECEIVE,
        find: 'this.#lookAt = performance.now() + waitMs\n    clearTimeout(this.#lookTimer)\n',
        replace: 'this.#lookAt = Number.POSITIVE_INFINITY\n    if (waitMs > 0) return\n',
      },
    ],
    scenario: 'wake-off',
    breaks: 'not drained',
  },
]
