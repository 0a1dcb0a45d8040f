import type { Edit, Mutant } from '../hunt.ts'

const ENACT = 'packages/transports/rabbitmq/src/enact.ts'
const PUBLISH = 'packages/transports/rabbitmq/src/publish.ts'
const TOPOLOGY = 'packages/transports/rabbitmq/src/topology.ts'

const SEND = '      const { proof, place, truncated } = await this.#sentOnce(delivery, decision)\n'
const PROVE = `      await this.#parts.publisher.inTime(proof)
      return unsettled.settle(delivery) ?`

const EARLY: Edit = {
  file: ENACT,
  find: PROVE,
  replace: `      const isOurs = unsettled.settle(delivery)
      await this.#parts.publisher.inTime(proof)
      return isOurs ?`,
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'acknowledge before the confirm, and the copy is refused',
    edits: [EARLY],
    scenario: 'dlq-full',
    breaks: 'lost',
  },
  {
    name: 'acknowledge before the confirm, and the copy does not arrive',
    edits: [EARLY],
    scenario: 'confirm-dropped',
    breaks: 'lost',
  },
  {
    name: 'publish without asking for a route',
    edits: [{ file: PUBLISH, find: 'mandatory: true', replace: 'mandatory: false' }],
    scenario: 'dlq-missing',
    breaks: 'lost',
  },
  {
    name: 'ignore what the broker returns',
    edits: [
      {
        file: PUBLISH,
        find: 'this.#returned.set(copyIn(message), replyIn(message))',
        replace: 'void replyIn(message)',
      },
    ],
    scenario: 'dlq-unroutable',
    breaks: 'lost',
  },
  {
    name: 'one delay queue for all, with a time to live for each message',
    edits: [
      {
        file: TOPOLOGY,
        find: '`${queue}.delay.${formatDuration(stepMs)}`',
        replace: '`${queue}.delay.all${formatDuration(stepMs).slice(0, 0)}`',
      },
      { file: TOPOLOGY, find: "          'x-message-ttl': stepMs,\n", replace: '' },
    ],
    scenario: 'mixed-delays',
    breaks: 'not drained',
  },
  {
    name: 'requeue instead of handing off',
    edits: [
      {
        file: ENACT,
        find: SEND,
        replace: `      if (decision.kind === 'retryAt') {
        return unsettled.giveBack(delivery) ? placed('retry') : LOST
      }
${SEND}`,
      },
    ],
    scenario: 'mixed-delays',
    breaks: 'scenario',
  },
]
