import { randomUUID } from 'node:crypto'
import type { Group } from '@redrive/api'
import { startReplay } from '../commands/approve.ts'
import { IN_RUN, sum } from '../commands/run-text.ts'
import { EXIT } from '../exit.ts'
import { fail } from '../failure.ts'
import { canAsk, type Io } from '../io.ts'
import { say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { askUntilAborted } from './ask.ts'
import { bold } from '../text/painted.ts'
import { counted } from '../text/format.ts'

/** Explanations of the groups of the shop, by failure class. */
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
  if (answer) await tryReplay(io, outage.id)
  else line`Replay it later: redrive replay plan group:${outage.id}`
  return true
}

/** Replays a group. A failure must not stop the server, so it is only printed. */
async function tryReplay(io: Io, group: string): Promise<void> {
  try {
    await replayGroup(io, group)
  } catch (error) {
    if (io.signal.aborted) throw error
    await fail(io, error, false)
    say(io)`The server still runs. Replay the group later: redrive replay plan group:${group}`
  }
}

/** Plans the replay of a group, starts it, and follows it to its end. */
async function replayGroup(io: Io, id: string): Promise<void> {
  const client = connect(io, {})
  const { signal } = io
  // Time has passed since the question: a replay in the console may have resolved the group.
  const { openCount } = await client.call('getGroup', { params: { id } }, { signal })
  if (openCount === 0) return say(io)`The group has no open messages any more.`
  const body = { selection: { group: id }, note: 'tour of redrive dev' }
  const call = { signal, idempotencyKey: randomUUID() }
  const plan = await client.call('planReplay', { body }, call)
  if (sum(plan.counts, IN_RUN) === 0) {
    return say(
      io,
    )`No message of the group is ready for a replay. See: redrive replay show ${plan.id}`
  }
  const code = await startReplay(io, plan.id, { wait: true, yes: true })
  if (code === EXIT.ok)
    say(io)`The consumer has confirmed each of them. The other two groups need a change first.`
  else say(io)`Not all of them are resolved. See: redrive replay show ${plan.id}`
}
