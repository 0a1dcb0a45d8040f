import type { Mutant } from '../harness/mutant.ts'

const BATCHER = 'packages/transports/sqs/src/batcher.ts'
const DELIVERY = 'packages/transports/sqs/src/delivery.ts'
const ENACT = 'packages/transports/sqs/src/enact.ts'

export const MUTANTS: readonly Mutant[] = [
  [
    'delete before the copy is stored, and die',
    'kill-at-boundaries',
    'lost',
    [
      ENACT,
      '      const done = stored ??',
      '      await release(delivery)\n      const done = stored ??',
    ],
  ],
  [
    'leave the original after the copy is stored',
    'kill-at-boundaries',
    'duplicates over the bound',
    [ENACT, '      await release(delivery)\n      return done', '      return done'],
  ],
  [
    'take a missing response for a success',
    'replies-lost',
    'lost',
    [
      BATCHER,
      '      for (const { reject } of some) reject(error)',
      '      for (const { resolve } of some) if (error !== undefined) resolve()',
    ],
  ],
  [
    'ignore the deliveries that SQS counts',
    'crash-loop',
    'not drained',
    [DELIVERY, 'deliveryCount: isFifo ? 1 : receives + countBefore(own)', 'deliveryCount: 1'],
  ],
]
