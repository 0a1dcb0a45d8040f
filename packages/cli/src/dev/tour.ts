import { randomUUID } from 'node:crypto'
import type { Group } from '@redrive/api'
import { startReplay } from '../commands/approve.ts'
import { EXIT } from '../exit.ts'
import { canAsk, type Io } from '../io.ts'
import { say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { askUntilAborted } from './ask.ts'
import { bold } from '../text/painted.ts'
import { counted } from '../text/format.ts'

/** What the tour says about a group of the shop, by its failure class. */
const ABOUT: Readonly<Record<string, readonly [title: string, text: string]>> = {
  transient: [
    'An outage that has ended.',
    'The payment service refused connections. It responds again, so a replay succeeds.',
  ],
  schema: [
    'A wrong schema.',
    'A partner sends the amount as text. A replay fails again until the body is changed: redrive edit',
  ],
  unknown: [
    'A poison message.',
    'It caused the same error in every attempt and is in quarantine. The consumer needs a fix first.',
  ],
}

/** Explains the groups of the shop, and replays the outage when the user agrees. Returns false when the user leaves with Ctrl-C. */
export async function runTour(io: Io, groups: readonly Group[]): Promise<boolean> {
  const outage = groups.find((group) => group.class === 'transient' && group.openCount > 0)
  if (outage === undefined) return true
  const line = say(io)
  line``
  for (const [at, [name, about]] of Object.entries(ABOUT).entries()) {
    const group = groups.find((one) => one.class === name)
    if (group !== undefined) line`${bold(`${at + 1}. ${about[0]}`)} ${about[1]}`
  }
  line``
  if (!canAsk(io)) {
    line`Replay the first group: redrive replay plan group:${outage.id}`
    return true
  }
  const question = `Replay the ${counted(outage.openCount, 'message')} of the outage now?`
  const answer = await askUntilAborted(io, question)
  if (answer === undefined) return false
  if (answer) await replayGroup(io, outage.id)
  else line`Replay it later: redrive replay plan group:${outage.id}`
  return true
}

/** Plans the replay of a group, starts it, and follows it to its end. */
async function replayGroup(io: Io, group: string): Promise<void> {
  const body = { selection: { group }, note: 'tour of redrive dev' }
  const call = { signal: io.signal, idempotencyKey: randomUUID() }
  const plan = await connect(io, {}).call('planReplay', { body }, call)
  const code = await startReplay(io, plan.id, { wait: true, yes: true })
  if (code === EXIT.ok)
    say(io)`The consumer has confirmed each of them. The other two groups need a change first.`
  else say(io)`Not all of them are resolved. See: redrive replay show ${plan.id}`
}
