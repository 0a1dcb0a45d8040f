import { setTimeout as after } from 'node:timers/promises'
import { type DeadLetterSource, type DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { inTransaction } from '../database.ts'
import { sha256Of } from '../ingest/identity.ts'
import { readDrained } from '../read/payload.ts'
import { changed, readChange } from './change.ts'
import { begin, claim, type Claim, type ClaimedItem, keeping, markPublished } from './claim.ts'
import { Epoch } from './epoch.ts'
import { type FailedPublish, returnFailed, returnUnsent } from './give-up.ts'
import { pauseClaimed } from './lifecycle.ts'
import type { ReplayParts } from './parts.ts'
import { confirm, type Confirmed, sweep } from './settle.ts'
import { together } from '../together.ts'

/** A source that is replayed into, and what is known of its consumers. */
export interface ReplaySource {
  readonly source: DeadLetterSource
  /** As the catalog knows it. Default: the name of the source. */
  readonly name?: string
  /**
   * Whether the consumers and what they call can take more; rejects with the reason when not. Asked before
   * every turn, a second apart at most. Default: nobody is asked.
   */
  readonly health?: (options: { readonly signal: AbortSignal }) => Promise<void>
  /** How far the consumers are behind. Above `mostLag` the run pauses. Default: nobody is asked. */
  readonly lag?: NonNullable<DeadLetterSource['lag']>
  /** Default 10,000. */
  readonly mostLag?: number
  /** Which of these keys the inbox of the consumers has; proves what was not confirmed in time. */
  readonly handled?: (keys: readonly string[]) => Promise<ReadonlySet<string>>
}

/** What a turn did. */
export interface Turn {
  readonly published: number
  readonly failed: number
  /** Published by someone who had lost the right to say so, or proven before it was said. */
  readonly fenced: number
}

const MOST_LAG = 10_000
/** 2 s for a health check: one that takes longer is an answer too. */
const HEALTH_MS = 2_000
/** 100 in a chunk, and 32 MiB of bodies: two chunks are in memory at once. */
const AT_ONCE = 100
const BYTES_AT_ONCE = 33_554_432
const NOTHING: Turn = Object.freeze({ published: 0, failed: 0, fenced: 0 })

/** Publishes what runs have queued, and settles what is out. Any number may work at once, in any number of processes. */
export class Replayer {
  readonly #parts: ReplayParts
  readonly #sources: ReadonlyMap<string, ReplaySource>
  readonly #epoch: Epoch

  constructor(parts: ReplayParts, sources: readonly ReplaySource[], witness: string | undefined) {
    this.#parts = parts
    this.#sources = new Map(sources.map((one) => [one.name ?? one.source.source, one]))
    this.#epoch = new Epoch(witness)
  }

  /** Publishes for at most about a second; undefined when nothing may go out now. */
  async turn(signal?: AbortSignal): Promise<Turn | undefined> {
    const { pool } = this.#parts
    if ((await this.#epoch.problem(pool)) !== undefined) return undefined
    const claimed = await this.#claim()
    const source = claimed === undefined ? undefined : this.#sources.get(claimed.source)
    if (claimed === undefined || source === undefined) return undefined
    return keeping(pool, claimed, () => this.#publish(claimed, source, signal))
  }

  /** Whoever would pause a run for lack of proofs looks for them first. */
  async #claim(): Promise<Claim | undefined> {
    const { pool } = this.#parts
    const names = [...this.#sources.keys()]
    const first = await claim(pool, names)
    if (first === undefined || !('stalled' in first)) return first
    await this.confirm(first.stalled)
    const second = await claim(pool, names, first.stalled)
    return second === undefined || 'stalled' in second ? undefined : second
  }

  async #publish(
    claimed: Claim,
    source: ReplaySource,
    signal: AbortSignal | undefined,
  ): Promise<Turn> {
    const { pool } = this.#parts
    const trouble = await troubleOf(source)
    if (trouble === undefined) return publishAll(this.#parts, claimed, source.source, signal)
    await returnUnsent(
      pool,
      claimed,
      claimed.items.map(({ place }) => place),
    )
    await pauseClaimed(pool, claimed, trouble)
    return NOTHING
  }

  /** Takes what the consumers of one source, or of all, said about replays. */
  async confirm(name?: string): Promise<Confirmed> {
    const { pool } = this.#parts
    const all = await together(this.#named(name), ([of, { source }]) => confirm(pool, of, source))
    return {
      resolved: all.reduce((sum, one) => sum + one.resolved, 0),
      expired: all.reduce((sum, one) => sum + one.expired, 0),
    }
  }

  /** Ends what is over: outcomes that did not come, runs that are done, plans that nobody approved. */
  async sweep(name?: string): Promise<void> {
    await together(this.#named(name), ([of, { handled }]) => sweep(this.#parts, of, handled))
  }

  #named(name: string | undefined): readonly (readonly [string, ReplaySource])[] {
    const all = [...this.#sources]
    return name === undefined ? all : all.filter(([one]) => one === name)
  }
}

/** Why nothing should go out to these consumers now. */
export async function troubleOf(replaySource: ReplaySource): Promise<string | undefined> {
  const { health, lag, mostLag = MOST_LAG } = replaySource
  try {
    await health?.({ signal: AbortSignal.timeout(HEALTH_MS) })
  } catch (error) {
    return `The consumers cannot take more: ${error instanceof Error ? error.message : String(error)}`
  }
  const behind = (await lag?.()) ?? 0
  return behind > mostLag ? `The consumers are ${behind} behind, more than ${mostLag}.` : undefined
}

/**
 * Chunk by chunk: while one goes out, the next is read and begun, and the one before is marked. Each
 * message goes out after the one before it.
 */
async function publishAll(
  parts: ReplayParts,
  claimed: Claim,
  source: DeadLetterSource,
  signal: AbortSignal | undefined,
): Promise<Turn> {
  const { pool } = parts
  const paced = { startsAt: performance.now() + claimed.waitMs, claimed, signal }
  const chunks = await chunksOf(pool, claimed.items)
  const endings: Promise<Ending>[] = []
  let notReady: NotReady | undefined
  try {
    for (let next = begun(parts, claimed, chunks[0]), at = 1; at <= chunks.length; at++) {
      const ready = await next
      next = begun(parts, claimed, chunks[at])
      const { proofs } = await send(source, ready, paced)
      const ending = proofs.then((sent) => marked(pool, claimed, sent))
      endings.push(ending)
      // Both are waited for later, where it is seen when they fail.
      for (const promise of [next, ending]) promise.catch(() => undefined)
    }
  } catch (error) {
    if (!(error instanceof NotReady)) throw error
    notReady = error
  }
  const turn = await ended(pool, claimed, await Promise.all(endings))
  if (notReady === undefined) return turn
  const places = claimed.items.map(({ place }) => place)
  await returnUnsent(pool, claimed, places)
  await pauseClaimed(pool, claimed, notReady.message)
  return turn
}

async function ended(pool: Pool, claimed: Claim, ends: readonly Ending[]): Promise<Turn> {
  const sum = (of: (one: Ending) => number) => ends.reduce((total, one) => total + of(one), 0)
  const published = sum((one) => one.published)
  const failed = ends.flatMap((one) => one.failed)
  await returnFailed(pool, claimed, failed, sum((one) => one.published + one.fenced) === 0)
  const unsent = sum((one) => one.unsent)
  const fenced = claimed.items.length - published - failed.length - unsent
  return { published, failed: failed.length, fenced }
}

interface Ending {
  readonly published: number
  readonly fenced: number
  readonly unsent: number
  readonly failed: readonly FailedPublish[]
}

async function marked(pool: Pool, claimed: Claim, { sent, unsent, failed }: Sent): Promise<Ending> {
  const { size } = await markPublished(pool, claimed, sent)
  await returnUnsent(pool, claimed, unsent)
  return { published: size, fenced: sent.length - size, unsent: unsent.length, failed }
}

interface Ready {
  readonly item: ClaimedItem
  /** SHA-256 of the body, hex. */
  readonly content: string
  readonly deadLetter: DrainedDeadLetter
}

/** Something that is to go out cannot: someone has to look before the run goes on. */
class NotReady extends Error {}

interface Sized extends ClaimedItem {
  readonly bytes: number
}

const SIZES = `
select id, payload_bytes from redrive_catalog.dead_letter where id = any($1::uuid[])`

/** In the order of the run, as many at once as fit into memory. */
async function chunksOf(
  pool: Pool,
  items: readonly ClaimedItem[],
): Promise<readonly (readonly Sized[])[]> {
  const ids = items.map((item) => item.dead_letter_id)
  const { rows } = await pool.query<{ id: string; payload_bytes: number }>(SIZES, [ids])
  const sizes = new Map(rows.map(({ id, payload_bytes }) => [id, payload_bytes]))
  const chunks: Sized[][] = []
  let room = 0
  for (const item of items) {
    const bytes = sizes.get(item.dead_letter_id) ?? 0
    const last = chunks.at(-1)
    if (last === undefined || bytes > room || last.length === AT_ONCE) {
      chunks.push([{ ...item, bytes }])
      room = BYTES_AT_ONCE - bytes
    } else {
      last.push({ ...item, bytes })
      room -= bytes
    }
  }
  return chunks
}

/** Read, and ours from now on to send; none of a chunk that is not there. */
async function begun(
  parts: ReplayParts,
  claimed: Claim,
  chunk: readonly Sized[] = [],
): Promise<readonly Ready[]> {
  const ready = await prepared(parts, claimed, chunk)
  const ours = await begin(
    parts.pool,
    claimed,
    ready.map(({ item, content }) => ({ place: item.place, content })),
  )
  return ready.filter(({ item }) => ours.has(item.place))
}

/** As they go out. One whose change no longer gives what was approved does not. */
async function prepared(
  { pool, keys }: ReplayParts,
  claimed: Claim,
  items: readonly Sized[],
): Promise<readonly Ready[]> {
  if (items.length === 0) return []
  const change = await readChange(claimed.change, claimed.runId, keys)
  const sizes = items.map((item) => ({ id: item.dead_letter_id, bytes: item.bytes }))
  const drained = await inTransaction(pool, (run) => readDrained(run, keys, sizes))
  return items.map((item) => {
    const one = drained.get(item.dead_letter_id)
    if (one === undefined) throw new NotReady(`The payload of ${item.dead_letter_id} is gone.`)
    const deadLetter = changed(one, change)
    const content = sha256Of(deadLetter.delivery.bytes).toString('hex')
    if (item.content === null || item.content === content) return { item, content, deadLetter }
    throw new NotReady(`What would go out of ${item.dead_letter_id} is not what was approved.`)
  })
}

interface Paced {
  readonly startsAt: number
  readonly claimed: Claim
  readonly signal: AbortSignal | undefined
}

interface Sent {
  readonly sent: readonly number[]
  readonly unsent: readonly number[]
  readonly failed: readonly FailedPublish[]
}

/**
 * Each at its moment, without waiting for the one before: the broker's proof may take longer than the
 * spacing. Resolves when the last is on its way, with the promise of all their proofs.
 */
async function send(
  source: DeadLetterSource,
  ready: readonly Ready[],
  { startsAt, claimed, signal }: Paced,
): Promise<{ readonly proofs: Promise<Sent> }> {
  const sent: number[] = []
  const unsent: number[] = []
  const failed: FailedPublish[] = []
  const places = new Map(claimed.items.map(({ place }, at) => [place, at]))
  const publishing: Promise<void>[] = []
  for (const { item, deadLetter } of ready) {
    const { place, replay_id: replayId } = item
    const waitMs = startsAt + (places.get(place) ?? 0) * claimed.spacingMs - performance.now()
    if (waitMs >= 1) await after(waitMs)
    if (signal?.aborted === true) {
      unsent.push(place)
      continue
    }
    publishing.push(
      source.publish({ deadLetter, replayId }).then(
        () => void sent.push(place),
        (error: unknown) => void failed.push({ place, error }),
      ),
    )
  }
  return { proofs: Promise.all(publishing).then(() => ({ sent, unsent, failed })) }
}
