import { lasting } from '../../wait.ts'
import type { Evidence } from '../../evidence.ts'
import type { ProduceFaults } from '../consumer-options.ts'
import type { KafkaScenario } from '../world.ts'
import { onCluster, underLoad } from './load.ts'

const RATE = 400

/** More than any cluster has on a bad day: of ten requests, three are not answered as they should be. */
const FAULTS: Omit<ProduceFaults, 'seed'> = {
  refused: 12,
  misreported: 12,
  swallowed: 3,
  unanswered: 3,
}
/** 1 s instead of 10: a run has a hundred of them, one after the other. */
const CONFIRM_MS = 1_000
/** Of the messages, so many need a copy. */
const MIX = { flaky: 20, business: 8, repeats: 4 }

export const produceErrors: KafkaScenario = onCluster({
  name: 'produce-errors',
  story:
    'copies are refused or never answered for, some of them although they are stored; a consumer dies meanwhile',
  messages: { smoke: 800, quick: 3_000, full: 20_000 },
  async play(world) {
    const rate = world.scale === 'full' ? RATE : RATE / 2
    const seconds = world.messages / rate
    const consumers = [1, 2, 3].map((seed) => ({ produceFaults: { seed, ...FAULTS } }))
    const load = { consumers, ratePerSecond: rate, mix: MIX, fleet: { confirmMs: CONFIRM_MS } }
    await underLoad(world, load, async (fleet) => {
      const end = world.fault('copies are refused or not answered for')
      await lasting((seconds * 1_000) / 2)
      // Whatever it had released before its copy was there is lost now.
      fleet.members()[0]?.signal('SIGKILL')
      await lasting((seconds * 1_000) / 2)
      fleet.start()
      for (const member of fleet.members().slice(0, 2)) await member.stop()
      end()
    })
  },
  tell: (evidence) => `${faultsIn(evidence)} requests broken`,
  check: (evidence) =>
    faultsIn(evidence) > 0 ? [] : [{ rule: 'scenario', text: 'no request was broken' }],
})

const faultsIn = ({ entries }: Evidence) =>
  entries.filter((entry) => entry.what === 'event' && entry.type === 'produce_fault').length
