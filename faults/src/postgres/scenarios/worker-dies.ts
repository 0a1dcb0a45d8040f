import type { Evidence, Violation } from '../../evidence/evidence.ts'
import { ready } from '../../harness/fleet.ts'
import { type Entry, readHistory } from '../../evidence/history.ts'
import { checkJudged, judgedOf, type Late } from '../../evidence/lateness.ts'
import { isDisturbed, standstillsIn } from '../../evidence/stalls.ts'
import { becomesTrue, lasting } from '../../harness/wait.ts'
import { LEASE_MS, type PostgresScenario } from '../world.ts'

/** The lease must expire, a consumer must claim the messages, and the handlers must run. */
const TAKEN_OVER_MS = LEASE_MS + 5_000
const RATE = 200

export const workerDies: PostgresScenario = {
  name: 'worker-dies',
  story: `a consumer dies with many messages in flight; others have handled all of them within ${TAKEN_OVER_MS / 1_000} s`,
  service: 'postgres',
  messages: { quick: 1_000, full: 4_000 },
  async play(world) {
    const times = world.scale === 'full' ? 5 : 2
    const fleet = world.fleet({ workMs: 100 })
    for (let count = 0; count < 3; count++) fleet.start()
    await ready(fleet, 3)
    fleet.supervise()
    const produced = world.produce({ ratePerSecond: RATE, mix: {} })
    for (let time = 0; time < times; time++) {
      await lasting(1_000)
      const victim = fleet.members().find(({ isReady }) => isReady)
      const end = world.fault(`${victim?.name} dies`)
      victim?.signal('SIGKILL')
      await victim?.gone
      end()
      const isHandled = () => takeOversIn(readHistory(world.folder)).at(-1)?.isWhole === true
      await becomesTrue(isHandled, { withinMs: TAKEN_OVER_MS, everyMs: 250 })
    }
    await produced
    world.heal()
  },
  summarize(evidence) {
    const all = takeOversIn(evidence.entries)
    const longest = Math.max(0, ...all.map(({ ms }) => ms))
    const count = all.reduce((sum, { messages }) => sum + messages, 0)
    return `${count} messages of ${all.length} dead consumers taken over within ${(longest / 1_000).toFixed(1)} s`
  },
  check: checkTakenOver,
}

/** The time from a death until the last of its messages was handled. */
interface TakeOver extends Late {
  readonly who: string
  /** Number of messages that it had started and not finished. */
  readonly messages: number
  readonly isWhole: boolean
}

/** Returns the outcome of the in-flight messages for each death. */
function takeOversIn(entries: readonly Entry[]): readonly TakeOver[] {
  const crashes = entries.flatMap((entry) =>
    entry.what === 'exited' && entry.isCrash ? [entry] : [],
  )
  const standstills = standstillsIn(entries)
  return crashes.map(({ process, at }) => {
    const own = entries.filter(({ by }) => by === process)
    const begun = new Set(own.flatMap((one) => (one.what === 'handler_started' ? [one.id] : [])))
    for (const one of own) if (one.what === 'effect') begun.delete(one.id)
    const handledAt = entries.flatMap((one) =>
      one.what === 'effect' && one.by !== process && begun.has(one.id) ? [one.at] : [],
    )
    const wait = { from: at, to: Math.max(at, ...handledAt) }
    return {
      who: process,
      messages: begun.size,
      isWhole: handledAt.length >= begun.size,
      ms: wait.to - wait.from,
      isDisturbed: isDisturbed(wait, standstills),
    }
  })
}

function checkTakenOver({ entries }: Evidence): readonly Violation[] {
  const all = takeOversIn(entries)
  const judged = judgedOf(all, TAKEN_OVER_MS)
  const slow = judged.filter(({ ms }) => ms > TAKEN_OVER_MS)
  const unfinished = all.filter(({ isWhole }) => !isWhole)
  const none = all.every(({ messages }) => messages === 0)
  return [
    ...slow.map(({ who, ms }) => handled(who, `only after ${ms} ms`)),
    ...unfinished.map(({ who }) => handled(who, 'never')),
    ...checkJudged('deaths', judged.length, all.length),
    ...(none
      ? [{ rule: 'scenario', text: 'no consumer died with a message in flight' } as const]
      : []),
  ]
}

const handled = (who: string, when: string): Violation => ({
  rule: 'scenario',
  text: `in-flight messages of ${who} were handled ${when}`,
})
