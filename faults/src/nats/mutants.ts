import type { Edit, Mutant } from '../harness/mutant.ts'

const ENACT = 'packages/transports/nats/src/enact.ts'
const PUBLISH = 'packages/transports/nats/src/publish.ts'
const SPECS = 'packages/transports/nats/src/specs.ts'

const EARLY: Edit = [
  ENACT,
  '      const done = this.#stored.get(delivery) ?? ',
  `      await acknowledge(connection, delivery.message.reply ?? '', confirmTimeoutMs)
      const done = this.#stored.get(delivery) ?? `,
]

export const MUTANTS: readonly Mutant[] = [
  ['acknowledge before the copy is stored, and die', 'kill-at-boundaries', 'lost', EARLY],
  [
    'ignore the rejection of a full stream',
    'full-stream',
    'lost',
    [PUBLISH, '  if (error === undefined) return', '  if (error !== null) return'],
  ],
  [
    'store copies in memory',
    'server-restart',
    'lost',
    [SPECS, '  storage: StorageType.File,', '  storage: StorageType.Memory,'],
  ],
  [
    'compute the time of a retry with the clock of the consumer',
    'client-clock',
    'scenario',
    [ENACT, '(await this.#deps.clock.latest()) + delayMs', 'Date.now() + delayMs'],
  ],
  [
    'leave the original after the copy is stored',
    'kill-at-boundaries',
    'duplicates over the bound',
    [
      ENACT,
      `      await acknowledge(connection, delivery.message.reply ?? '', confirmTimeoutMs)
      return done`,
      '      return done',
    ],
  ],
]
