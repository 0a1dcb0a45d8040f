import type { Mutant } from '../harness/mutant.ts'

const ENACT = 'packages/transports/postgres/src/enact.ts'
/** The file with the current `outbox_turn`. */
const FUNCTIONS = 'packages/transports/postgres/src/migrations/0008-turn.ts'
const MAINTENANCE = 'packages/transports/postgres/src/migrations/0006-maintenance.ts'
const INBOX = 'packages/transports/postgres/src/inbox.ts'
const POOL = 'packages/postgres-internal/src/pool.ts'
const SCHEDULE = 'packages/transports/postgres/src/claim-schedule.ts'
const TURN = 'packages/transports/postgres/src/turn.ts'

const ENTER = `          result = await enter(query(tx), entry)
          isEntered = true
          if (result !== 'handled') throw NOT_NEW
`

export const MUTANTS: readonly Mutant[] = [
  [
    'complete without checking the lease token',
    'stopped',
    'not fenced',
    [
      FUNCTIONS,
      `(o.id, o.lease_token) in (select d.id, d.token from`,
      `(o.id, o.lease_token) in (select d.id, o.lease_token from`,
    ],
  ],
  [
    'hand off without checking the lease token',
    'stopped',
    'not fenced',
    [
      FUNCTIONS,
      `reason text, error text)
      where o.id = any (array[d.id]) and o.lease_token = d.token and`,
      `reason text, error text)
      where o.id = any (array[d.id]) and`,
    ],
  ],
  [
    "compute the end of a lease with the consumer's clock",
    'client-clock',
    'duplicates over the bound',
    [
      FUNCTIONS,
      `lease interval := lease_ms * interval '1 millisecond';`,
      `lease interval := to_timestamp(lease_ms / 1000.0) - now();`,
    ],
    [TURN, '    maxRows,\n    leaseMs,\n', '    maxRows,\n    Date.now() + leaseMs,\n'],
  ],
  [
    "compute the due time of a retry with the consumer's clock",
    'client-clock',
    'scenario',
    [ENACT, 'Math.max(0, decision.delayMs)', 'Math.max(0, decision.dueAt - Date.now())'],
  ],
  [
    'search only after the last claimed row',
    'long-transactions',
    'not drained',
    [SCHEDULE, 'isFullScan ? NO_WATERMARK : this.#watermark', 'this.#watermark'],
    [SCHEDULE, 'const OVERLAP_MS = 1_000', 'const OVERLAP_MS = 0'],
  ],
  [
    'ignore an in-flight row of the lane when an earlier one is committed late',
    'long-transactions',
    'out of order',
    [FUNCTIONS, ' or (first.id <> o.id and first.lease_until >= now())', ''],
  ],
  [
    'store the key before the transaction',
    'kill-random',
    'lost',
    [
      INBOX,
      ENTER,
      `          await transaction(async (other) => {
            result = await enter(query(other), entry)
          })
          isEntered = true
          if (result !== 'handled') throw NOT_NEW
`,
    ],
  ],
  [
    'store the key after the transaction',
    'kill-at-boundaries',
    'effect duplicated',
    [INBOX, ENTER, ''],
    [
      INBOX,
      '        }, attempt)\n        return result\n',
      `        }, attempt)
        await transaction(async (tx) => {
          result = await enter(query(tx), entry)
        })
        return result
`,
    ],
  ],
  [
    'do not listen for the end of a connection',
    'cuts',
    'not drained',
    [POOL, "  client.on('error', ignore)\n", ''],
  ],
  [
    'search only after a notification',
    'wake-off',
    'not drained',
    [
      SCHEDULE,
      'this.#claimAfter = performance.now() + waitMs\n    clearTimeout(this.#claimTimer)\n',
      'this.#claimAfter = Number.POSITIVE_INFINITY\n    if (waitMs > 0) return\n',
    ],
  ],
  [
    'wait three seconds for the lock of a day',
    'maintenance',
    'scenario',
    [MAINTENANCE, "set lock_timeout = '50ms'`", "set lock_timeout = '3s'`"],
  ],
  [
    'drop a day after the first thousand of its dead letters have moved',
    'maintenance',
    'scenario',
    [MAINTENANCE, '  if moved > 0 then return moved; end if;\n', ''],
  ],
]
