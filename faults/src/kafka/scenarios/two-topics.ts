import { lasting } from '../../harness/wait.ts'
import { plan, USUAL_MIX } from '../../evidence/message.ts'
import { createTopics } from '../broker.ts'
import { groupOf } from '../topology.ts'
import type { KafkaScenario } from '../world.ts'
import { onCluster, PATIENT, underLoad } from './load.ts'

const RATE = 250

export const twoTopics: KafkaScenario = onCluster({
  name: 'two-topics',
  story:
    'one group consumes two topics: in separate processes and in one; its members join and leave',
  messages: { quick: 1_500, full: 10_000 },
  async play(world) {
    const { run, broker, partitions, messages } = world
    const other = `${run}-other`
    const group = groupOf(run)
    await createTopics(broker, [other], partitions)
    const each = [[run], [other], [run, other]].map((queues) => ({ queues }))
    const load = { consumers: each, ratePerSecond: RATE, fleet: { group, ...PATIENT } }
    const everyMs = world.scale === 'full' ? 5_000 : 2_000
    await underLoad(world, load, async (fleet) => {
      const end = world.fault('members join and leave')
      const sent = world.send(other, plan(`${run}/other`, messages, USUAL_MIX), RATE)
      // Awaited below.
      sent.catch(() => undefined)
      for (let turn = 0; world.isSending(); turn++) {
        fleet.start({ queues: [turn % 2 === 0 ? run : other] })
        await lasting(everyMs)
        // The oldest member of that topic stays: each topic always has a member.
        const leaving = fleet.members().filter(({ isReady }) => isReady)
        if (leaving.length > each.length) await leaving.at(-1)?.stop()
        await lasting(everyMs)
      }
      await sent
      end()
    })
  },
  check: ({ entries }, { run }) => {
    const read = new Set(
      entries.flatMap((one) => (one.what === 'delivered' ? [one.position.split('/')[0]] : [])),
    )
    return [run, `${run}-other`]
      .filter((topic) => !read.has(topic))
      .map((topic) => ({ rule: 'scenario', text: `${topic} was never read` }))
  },
  summarize({ entries }) {
    const rounds = entries.flatMap((one) => (one.what === 'assigned' ? [one.generation] : []))
    return `${Math.max(0, ...rounds)} rebalances`
  },
})
