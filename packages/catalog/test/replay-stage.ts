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

/** A source whose consumers do what the test says with each replay, as soon as it is published. */
export class Wire implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  /** Everything that was ever on the wire. */
  readonly sent: ReplayMessage[] = []
  readonly sentAt: number[] = []
  answer: (message: ReplayMessage) => Answer = () => 'handled'
  /** Rejects the publish, after it was sent or before. */
  refuse: ((message: ReplayMessage) => Error | undefined) | undefined
  /** Runs before a publish is answered. */
  onPublish: (() => Promise<void>) | undefined
  /** Confirmations that the broker was told to forget. */
  released = 0
  #waiting: DrainedDeadLetter[]
  #said: ReplayConfirmation[] = []

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
    else if (answer !== 'silent') this.#said.push({ replayId, outcome: answer, at: Date.now() })
  }

  async confirmations({ most }: { readonly most: number }) {
    const confirmations = this.#said.splice(0, most)
    return {
      confirmations,
      release: async () => void (this.released += confirmations.length),
      abandon: async () => void this.#said.unshift(...confirmations),
    }
  }

  async drain({ most }: { readonly most: number }) {
    const deadLetters = this.#waiting.splice(0, most)
    return {
      deadLetters,
      release: async () => undefined,
      abandon: async () => void this.#waiting.unshift(...deadLetters),
    }
  }

  say(...said: readonly ReplayConfirmation[]): void {
    this.#said.push(...said)
  }

  back(...deadLetters: readonly DrainedDeadLetter[]): void {
    this.#waiting.push(...deadLetters)
  }

  async depth(): Promise<number> {
    return this.#waiting.length
  }

  async close(): Promise<void> {}
}

/** The same message, dead again in its next cycle. */
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

/** A catalog, a source with dead letters, and what is done with them. */
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
    /** Planned by one and approved by another. */
    async started(request: Partial<ReplayRequest> = {}): Promise<ReplayRun> {
      const { id, hash } = await this.plan(request)
      return made.replays.approve(id, { hash, by: 'bob' })
    },
    /** Works until the run says what the test waits for. */
    async until(id: string, isSo: (run: ReplayRun) => boolean): Promise<ReplayRun> {
      const endsAt = Date.now() + 20_000
      for (;;) {
        await replayer.turn()
        await replayer.confirm()
        await made.ingest(wire)
        await replayer.sweep()
        const run = (await made.replays.run(id)) as ReplayRun
        if (isSo(run)) return run
        if (Date.now() > endsAt) throw new Error(`Not in time: ${JSON.stringify(run)}`)
      }
    },
    /** Only looks. */
    async seen(id: string, isSo: (run: ReplayRun) => boolean): Promise<ReplayRun> {
      const endsAt = Date.now() + 20_000
      for (;;) {
        const run = (await made.replays.run(id)) as ReplayRun
        if (isSo(run)) return run
        if (Date.now() > endsAt) throw new Error(`Not in time: ${JSON.stringify(run)}`)
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
    /** How many dead letters have each status. */
    async statuses(): Promise<Readonly<Record<string, number>>> {
      const found = await rows<{ status: string; count: number }>(
        pool,
        `select d.status, count(*)::integer as count from redrive_catalog.dead_letter d
          join redrive_catalog.source s on s.id = d.source_id where s.name = $1 group by 1`,
        [name],
      )
      return Object.fromEntries(found.map(({ status, count: many }) => [status, many]))
    },
    /** What the group says is open, which nothing may have got wrong. */
    async openCount(): Promise<number | undefined> {
      return (await made.group(group))?.openCount
    },
  }
}
