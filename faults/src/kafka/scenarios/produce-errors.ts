import { lasting } from '../../harness/wait.ts'
import type { Evidence } from '../../evidence/evidence.ts'
import type { ProduceFaults } from '../consumer-options.ts'
import type { KafkaScenario } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const RATE = 400

/** More than a real cluster has: three of ten requests get a wrong response or none. */
const USUAL: Omit<ProduceFaults, 'seed'> = {
  refused: 12,
  misreported: 12,
  swallowed: 3,
  unanswered: 3,
}
/** With `--smoke` a run has some tens of requests, and each fault must be among them. */
const OFTEN: Omit<ProduceFaults, 'seed'> = {
  refused: 15,
  misreported: 10,
  swallowed: 10,
  unanswered: 15,
}
/** 1 s instead of 10: a run has a hundred timeouts in sequence. */
const CONFIRM_MS = 1_000
/** Share of messages that need a copy. */
const MIX = { flaky: 20, business: 8, repeats: 4 }

export const produceErrors: KafkaScenario = onCluster({
  name: 'produce-errors',
  story:
    'copies are rejected or get no response, some although they are stored; a consumer dies during this',
  messages: { smoke: 800, quick: 3_000, full: 20_000 },
  async play(world) {
    const rate = world.scale === 'full' ? RATE : RATE / 2
    const seconds = world.messages / rate
    const faults = world.scale === 'smoke' ? OFTEN : USUAL
    const consumers = [1, 2, 3].map((seed) => ({ produceFaults: { seed, ...faults } }))
    const load = { consumers, ratePerSecond: rate, mix: MIX, fleet: { confirmMs: CONFIRM_MS } }
    await underLoad(world, load, async (fleet) => {
      const end = world.fault('copies are rejected or get no response')
      await lasting((seconds * 1_000) / 2)
      // A message released before its copy was stored is lost now.
      fleet.members()[0]?.signal('SIGKILL')
      await lasting((seconds * 1_000) / 2)
      fleet.start()
      for (const member of fleet.members().slice(0, 2)) await member.stop()
      end()
    })
  },
  summarize: (evidence) =>
    `${faultsIn(evidence).length} requests broken, ${lostIn(evidence)} responses lost`,
  check: (evidence) =>
    lostIn(evidence) > 0 ? [] : [{ rule: 'scenario', text: 'no response was lost' }],
})

const faultsIn = ({ entries }: Evidence): readonly (string | undefined)[] =>
  entries.flatMap((entry) =>
    entry.what === 'event' && entry.type === 'produce_fault' ? [entry.note] : [],
  )

/** Counts copies that the cluster stored and did not confirm. */
const lostIn = (evidence: Evidence) =>
  faultsIn(evidence).filter((fault) => fault === 'unanswered' || fault === 'misreported').length
