import type { Edit, Mutant } from '../harness/mutant.ts'

const ADMIT = 'packages/core/src/admit.ts'
const ENACT = 'packages/transports/rabbitmq/src/enact.ts'
const LANES = 'packages/transports/rabbitmq/src/consume/lanes.ts'
const OPTIONS = 'packages/transports/rabbitmq/src/options.ts'
const PENDING = 'packages/runtime/src/pending-delivery.ts'
const PUBLISH = 'packages/transports/rabbitmq/src/publish.ts'
const TOPOLOGY = 'packages/transports/rabbitmq/src/topology.ts'

const SEND = '      const { proof, done } = await this.#sentOnce(delivery, decision)\n'
const PROVE = `      await this.#deps.publisher.inTime(proof)
      return unsettled.settle(delivery) ?`

const EARLY: Edit = [
  ENACT,
  PROVE,
  `      const isOurs = unsettled.settle(delivery)
      await this.#deps.publisher.inTime(proof)
      return isOurs ?`,
]

export const MUTANTS: readonly Mutant[] = [
  ['acknowledge before the confirm, and the copy is rejected', 'dlq-full', 'lost', EARLY],
  [
    'acknowledge before the confirm, and the copy does not arrive',
    'confirm-dropped',
    'lost',
    EARLY,
  ],
  [
    'publish without the mandatory flag',
    'dlq-missing',
    'lost',
    [PUBLISH, 'mandatory: true', 'mandatory: false'],
  ],
  [
    'ignore returned messages',
    'dlq-unroutable',
    'lost',
    [
      PUBLISH,
      'this.#returned.set(copyNumberIn(message), replyIn(message))',
      'void replyIn(message)',
    ],
  ],
  [
    'use one delay queue with a time to live for each message',
    'mixed-delays',
    'not drained',
    [
      TOPOLOGY,
      '`${prefix}.delay.${formatDuration(stepMs)}`',
      '`${prefix}.delay.all${formatDuration(stepMs).slice(0, 0)}`',
    ],
    [TOPOLOGY, "          'x-message-ttl': stepMs,\n", ''],
  ],
  [
    'forget the rest of a delay',
    'client-clock',
    'scenario',
    [
      PENDING,
      'cycle: { ...decision.cycle, remainingMs }',
      'cycle: { ...decision.cycle, remainingMs: 0 }',
    ],
  ],
  [
    'count the rest of a delay with the clock of the consumer',
    'client-clock',
    'scenario',
    [
      PENDING,
      'const remainingMs = Math.max(0, decision.delayMs - partMs)',
      'const over = Math.max(0, decision.delayMs - partMs)\n  const remainingMs = over === 0 ? 0 : decision.dueAt',
    ],
    [
      ADMIT,
      'const delayMs = cycle.remainingMs',
      'const delayMs = cycle.remainingMs === 0 ? 0 : cycle.remainingMs - now',
    ],
    [PENDING, 'dueAt: decision.dueAt - remainingMs', 'dueAt: decision.dueAt - over'],
    [PENDING, 'delayMs: decision.delayMs - remainingMs', 'delayMs: decision.delayMs - over'],
  ],
  [
    'use the name of an existing dead-letter queue',
    'adoption',
    'scenario',
    [
      OPTIONS,
      "(topology === 'adopt' ? adoptedPrefix(queue) : queue)",
      '(topology ? queue : adoptedPrefix(queue))',
    ],
  ],
  [
    'requeue instead of handing off',
    'mixed-delays',
    'scenario',
    [
      ENACT,
      SEND,
      `      if (decision.kind === 'retryAt') {
        return unsettled.returnToQueue(delivery) ? movedTo('retry') : LOST
      }
${SEND}`,
    ],
  ],
  [
    'deliver a message while another one of its lane is in flight',
    'ordered',
    'out of order',
    [LANES, '      waiting.push(delivery)\n      return\n', '      // not held back\n'],
  ],
  [
    'let several consumers of an ordered queue be active',
    'ordered',
    'out of order',
    [TOPOLOGY, '{ [SINGLE_ACTIVE_CONSUMER]: true }', '{ [SINGLE_ACTIVE_CONSUMER]: false }'],
  ],
]
