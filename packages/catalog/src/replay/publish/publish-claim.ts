import { setTimeout as after } from 'node:timers/promises'
import type { DeadLetterSource } from '@redrive/runtime'
import type { Pool } from 'pg'
import type { ReplayDeps } from '../run/context.ts'
import { pauseClaimed } from '../run/lifecycle.ts'
import { beginChunk, chunksOf, NotReady, type ReadyChunk } from './chunks.ts'
import { type Claim, markPublished } from './claim.ts'
import { type FailedPublish, returnFailed, returnUnsent } from './return-unsent.ts'

/**
 * 500 ms: a message is published only if its run was running within this time. So nothing is published later than
 * this after a pause or a cancel, however slow this process is.
 */
const CHECKED_MS = 500

/** The result of one turn. */
export interface Turn {
  readonly published: number
  readonly failed: number
  /** Number of items that this worker could not mark: its lease had expired, or their outcome arrived first. */
  readonly fenced: number
}

/**
 * Publishes the claimed items in order, chunk by chunk. During one chunk, the next is read and marked as
 * publishing, and the previous is marked as published.
 */
export async function publishClaim(
  deps: ReplayDeps,
  claimed: Claim,
  source: DeadLetterSource,
  signal: AbortSignal | undefined,
): Promise<Turn> {
  const { pool } = deps
  const pacing = { startsAt: performance.now() + claimed.waitMs, claimed, signal }
  const chunks = await chunksOf(pool, claimed.items)
  const marking: Promise<ChunkResult>[] = []
  let notReady: NotReady | undefined
  try {
    for (let next = beginChunk(deps, claimed, chunks[0]), at = 1; at <= chunks.length; at++) {
      const ready = await next
      next = beginChunk(deps, claimed, chunks[at])
      // Awaited in the next turn of the loop, which reports its error. It may fail while this chunk is sent.
      next.catch(() => undefined)
      const { confirmations } = await send(source, ready, pacing)
      const marked = confirmations.then((sent) => markSent(pool, claimed, sent))
      marking.push(marked)
      // Awaited after the loop, which reports its error.
      marked.catch(() => undefined)
    }
  } catch (error) {
    if (!(error instanceof NotReady)) throw error
    notReady = error
  }
  const turn = await endTurn(pool, claimed, await Promise.all(marking))
  if (notReady === undefined) return turn
  const places = claimed.items.map(({ place }) => place)
  await returnUnsent(pool, claimed, places)
  await pauseClaimed(pool, claimed, notReady.message)
  return turn
}

interface Pacing {
  readonly startsAt: number
  readonly claimed: Claim
  readonly signal: AbortSignal | undefined
}

interface SendResult {
  readonly sent: readonly number[]
  readonly unsent: readonly number[]
  readonly failed: readonly FailedPublish[]
}

/**
 * Publishes each message at its scheduled time. It does not wait for the previous one, because a broker
 * confirmation may take longer than the spacing. Resolves after the last publish call, with a promise of all
 * confirmations.
 */
async function send(
  source: DeadLetterSource,
  { items, checkedAt }: ReadyChunk,
  { startsAt, claimed, signal }: Pacing,
): Promise<{ readonly confirmations: Promise<SendResult> }> {
  const sent: number[] = []
  const unsent: number[] = []
  const failed: FailedPublish[] = []
  const places = new Map(claimed.items.map(({ place }, at) => [place, at]))
  const publishing: Promise<void>[] = []
  for (const { item, deadLetter, signedId: replayId } of items) {
    const { place } = item
    const waitMs = startsAt + (places.get(place) ?? 0) * claimed.spacingMs - performance.now()
    if (waitMs >= 1) await after(waitMs)
    if (signal?.aborted === true || performance.now() - checkedAt > CHECKED_MS) {
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
  return { confirmations: Promise.all(publishing).then(() => ({ sent, unsent, failed })) }
}

interface ChunkResult {
  readonly published: number
  readonly fenced: number
  readonly unsent: number
  readonly failed: readonly FailedPublish[]
}

async function markSent(
  pool: Pool,
  claimed: Claim,
  { sent, unsent, failed }: SendResult,
): Promise<ChunkResult> {
  const { size } = await markPublished(pool, claimed, sent)
  const returned = await returnUnsent(pool, claimed, unsent)
  return { published: size, fenced: sent.length - size, unsent: returned, failed }
}

async function endTurn(pool: Pool, claimed: Claim, results: readonly ChunkResult[]): Promise<Turn> {
  const sum = (count: (one: ChunkResult) => number) =>
    results.reduce((total, one) => total + count(one), 0)
  const published = sum((one) => one.published)
  const failed = results.flatMap((one) => one.failed)
  await returnFailed(pool, claimed, failed, sum((one) => one.published + one.fenced) === 0)
  const unsent = sum((one) => one.unsent)
  const fenced = claimed.items.length - published - failed.length - unsent
  return { published, failed: failed.length, fenced }
}
