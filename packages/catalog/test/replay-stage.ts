import type {
  DeadLetterSource,
  DrainedDeadLetter,
  ReplayConfirmation,
  ReplayMessage,
} from '@redrive/runtime'
import type { Pool } from 'pg'
import { catalog, type CatalogOptions, type ReplayRequest, type ReplayRun } from '../src/index.ts'
import { groupId } from '../src/ingest/identity.ts'
import { dead, rows, type Said } from './rig.ts'

export const SIGNATURE = '1-00000000000000aa'

type Answer = 'handled' | 'already_handled' | 'dropped' | 'fails' | 'silent'

/** A source whose consumers handle each published replay in the way that the test sets. */
export class Wire implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  /** All published messages. */
  readonly sent: ReplayMessage[] = []
  readonly sentAt: number[] = []
  answer: (message: ReplayMessage) => Answer = () => 'handled'
  /** Rejects the publish, before or after the message is stored. */
  refuse: ((message: ReplayMessage) => Error | undefined) | undefined
  /** Runs before a publish is confirmed. */
  onPublish: (() => Promise<void>) | undefined
  /** Number of released confirmations. */
  released = 0
  #waiting: DrainedDeadLetter[]
  #pendingConfirmations: ReplayConfirmation[] = []

  constructor(source: string, deadLetters: readonly DrainedDeadLetter[] = []) {
    this.source = source
    this.#waiting = [...deadLetters]
  }

  async publish(message: ReplayMessage): Promise<void> {
    const error = this.refuse?.(message)
    if (error !== undefined) throw error
    this.sent.push(message)
    this.sentAt.push(performance.now())
    this.#consume(message)
    await this.onPublish?.()
  }

  #consume(message: ReplayMessage): void {
    const answer = this.answer(message)
    const { replayId, deadLetter } = message
    if (answer === 'fails') this.#waiting.push(failedAgain(deadLetter, replayId))
    else if (answer !== 'silent')
      this.#pendingConfirmations.push({ replayId, outcome: answer, at: Date.now() })
  }

  async confirmations({ limit }: { readonly limit: number }) {
    const confirmations = this.#pendingConfirmations.splice(0, limit)
    return {
      confirmations,
      release: async () => void (this.released += confirmations.length),
      abandon: async () => void this.#pendingConfirmations.unshift(...confirmations),
    }
  }

  async drain({ limit }: { readonly limit: number }) {
    const deadLetters = this.#waiting.splice(0, limit)
    return {
      deadLetters,
      release: async () => undefined,
      abandon: async () => void this.#waiting.unshift(...deadLetters),
    }
  }

  say(...confirmations: readonly ReplayConfirmation[]): void {
    this.#pendingConfirmations.push(...confirmations)
  }

  back(...deadLetters: readonly DrainedDeadLetter[]): void {
    this.#waiting.push(...deadLetters)
  }

  async depth(): Promise<number> {
    return this.#waiting.length
  }

  async close(): Promise<void> {}
}

/** Returns the same message as a dead letter in its next cycle. */
export function failedAgain(
  deadLetter: DrainedDeadLetter,
  replayId: string,
  said: Said = {},
): DrainedDeadLetter {
  const { delivery } = deadLetter
  const at = Date.now()
  const { delivery: model } = dead({ at, signature: SIGNATURE, ...said })
  const cycle = { ...model.cycle, number: delivery.cycle.number + 1 }
  return { ...deadLetter, delivery: { ...delivery, cycle, replayId } }
}

/** Creates a catalog and a source with dead letters, with functions for tests. */
export async function staged(
  pool: Pool,
  name: string,
  count: number,
  said: (at: number) => Said = () => ({}),
  options: Partial<CatalogOptions> = {},
) {
  const made = catalog({ pool, ...options })
  const wire = new Wire(
    name,
    Array.from({ length: count }, (_, at) =>
      dead({ at: Date.now() - 60_000 + at, signature: SIGNATURE, ...said(at) }),
    ),
  )
  await made.ingest(wire)
  const group = groupId(name, SIGNATURE)
  const replayer = made.replays.replayer({ sources: [{ source: wire }] })
  return {
    catalog: made,
    replays: made.replays,
    wire,
    group,
    replayer,
    plan: (request: Partial<ReplayRequest> = {}) =>
      made.replays.plan({ selection: { group }, by: 'ada', ratePerSecond: 5_000, ...request }),
    /** Plans a run as one user and approves it as another. */
    async started(request: Partial<ReplayRequest> = {}): Promise<ReplayRun> {
      const { id, hash } = await this.plan(request)
      return made.replays.approve(id, { hash, by: 'bob' })
    },
    /** Runs turns until the run fulfils the condition. */
    async until(id: string, isReached: (run: ReplayRun) => boolean): Promise<ReplayRun> {
      const endsAt = Date.now() + 20_000
      for (;;) {
        await replayer.turn()
        await replayer.confirm()
        await made.ingest(wire)
        await replayer.sweep()
        const run = (await made.replays.run(id)) as ReplayRun
        if (isReached(run)) return run
        if (Date.now() > endsAt)
          throw new Error(
            `The run did not reach the expected state in time: ${JSON.stringify(run)}`,
          )
      }
    },
    /** Waits until the run fulfils the condition, without running turns. */
    async seen(id: string, isReached: (run: ReplayRun) => boolean): Promise<ReplayRun> {
      const endsAt = Date.now() + 20_000
      for (;;) {
        const run = (await made.replays.run(id)) as ReplayRun
        if (isReached(run)) return run
        if (Date.now() > endsAt)
          throw new Error(
            `The run did not reach the expected state in time: ${JSON.stringify(run)}`,
          )
      }
    },
    ended(id: string) {
      return this.until(id, ({ state }) => state !== 'running')
    },
    async ids(): Promise<readonly string[]> {
      const found = await rows<{ id: string }>(
        pool,
        `select d.id from redrive_catalog.dead_letter d join redrive_catalog.source s on s.id = d.source_id
          where s.name = $1 order by d.id`,
        [name],
      )
      return found.map(({ id }) => id)
    },
    /** Counts dead letters by status. */
    async statuses(): Promise<Readonly<Record<string, number>>> {
      const found = await rows<{ status: string; count: number }>(
        pool,
        `select d.status, count(*)::integer as count from redrive_catalog.dead_letter d
          join redrive_catalog.source s on s.id = d.source_id where s.name = $1 group by 1`,
        [name],
      )
      return Object.fromEntries(found.map(({ status, count: many }) => [status, many]))
    },
    /** Returns the stored counts of the group, which must always be correct. */
    async counts() {
      const found = await made.group(group)
      const { openCount, replayingCount, undecidedCount } = found ?? {}
      return { open: openCount, replaying: replayingCount, undecided: undecidedCount }
    },
    /** Returns the stored number of dead letters of the group without a final outcome. */
    async unsettledCount(): Promise<number> {
      const { open = 0, replaying = 0, undecided = 0 } = await this.counts()
      return open + replaying + undecided
    },
  }
}
