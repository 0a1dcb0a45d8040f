import type { DeadLetterSource } from '@redrive/runtime'
import { runAll } from '../../run-all.ts'
import { confirm, type ConfirmResult, sweep } from '../outcome/confirm.ts'
import type { ReplayDeps } from '../run/context.ts'
import { pauseClaimed } from '../run/lifecycle.ts'
import { Epoch } from '../run/restore-detection.ts'
import { claim, type Claim, keeping } from './claim.ts'
import { publishClaim, type Turn } from './publish-claim.ts'
import { returnUnsent } from './return-unsent.ts'
import { hasApproved, publishOneSetAside } from '../../set-aside/replay.ts'

/** A source to replay into, with functions that check its consumers. */
export interface ReplaySource {
  readonly source: DeadLetterSource
  /** Name of the source in the catalog. Default: the name of the source itself. */
  readonly name?: string
  /**
   * Checks whether the consumers and their dependencies can accept more messages; rejects with the reason if
   * not. It is called up to four times a second while a run publishes. Default: no check.
   */
  readonly health?: (options: { readonly signal: AbortSignal }) => Promise<void>
  /** Returns how many messages the consumers are behind. Above `maxLag` the run pauses. Default: no check. */
  readonly lag?: NonNullable<DeadLetterSource['lag']>
  /** Maximum lag in messages, default 10,000. */
  readonly maxLag?: number
  /** Returns which of these keys are in the consumers' inbox. It confirms replays without a confirmation in time. */
  readonly handled?: (keys: readonly string[]) => Promise<ReadonlySet<string>>
}

const MAX_LAG = 10_000
/** 2 s for a health check: a slower consumer counts as unhealthy. */
const HEALTH_MS = 2_000
/** 250 ms, as long as a turn: a good result is used for this time, by all runs of a source. */
const HEALTHY_MS = 250
const NOTHING: Turn = Object.freeze({ published: 0, failed: 0, fenced: 0 })

/** Publishes the queued items of runs, and reads their outcomes. Several can work at the same time, in any process. */
export class Replayer {
  readonly #deps: ReplayDeps
  readonly #sources: ReadonlyMap<string, ReplaySource>
  readonly #epoch: Epoch
  /** When the last check of each source found no problem. */
  readonly #healthyAt = new Map<ReplaySource, number>()

  /** @internal */
  constructor(
    deps: ReplayDeps,
    sources: readonly ReplaySource[],
    restoreMarkerFile: string | undefined,
  ) {
    this.#deps = deps
    this.#sources = new Map(sources.map((one) => [one.name ?? one.source.source, one]))
    this.#epoch = new Epoch(restoreMarkerFile)
  }

  /** Publishes what is due now in one run, for less than a second. Returns undefined if nothing is due. */
  async turn(signal?: AbortSignal): Promise<Turn | undefined> {
    const { pool } = this.#deps
    if ((await this.#epoch.problem(pool)) !== undefined) return undefined
    const claimed = await this.#claim()
    const source = claimed === undefined ? undefined : this.#sources.get(claimed.source)
    if (claimed === undefined || source === undefined) return undefined
    return keeping(pool, claimed, () => this.#publish(claimed, source, signal))
  }

  /** Claims items. Reads confirmations before it pauses a run that has none. */
  async #claim(): Promise<Claim | undefined> {
    const { pool } = this.#deps
    const names = [...this.#sources.keys()]
    let confirmedSource: string | undefined
    // At most once for each source, then once more to claim.
    for (let left = names.length; left >= 0; left--) {
      const claimed = await claim(pool, { sources: names, confirmedSource })
      if (claimed === undefined || !('stalled' in claimed)) return claimed
      confirmedSource = claimed.stalled
      await this.confirm(confirmedSource)
    }
    return undefined
  }

  async #publish(
    claimed: Claim,
    source: ReplaySource,
    signal: AbortSignal | undefined,
  ): Promise<Turn> {
    const { pool } = this.#deps
    const problem = await this.#problemOf(source)
    if (problem === undefined) return publishClaim(this.#deps, claimed, source.source, signal)
    await returnUnsent(
      pool,
      claimed,
      claimed.items.map(({ place }) => place),
    )
    await pauseClaimed(pool, claimed, problem)
    return NOTHING
  }

  /** Checks the consumers of a source, at most four times a second while they are healthy. */
  async #problemOf(source: ReplaySource): Promise<string | undefined> {
    const { health, lag } = source
    if (health === undefined && lag === undefined) return undefined
    const healthyAt = this.#healthyAt.get(source) ?? Number.NEGATIVE_INFINITY
    const now = performance.now()
    if (now - healthyAt < HEALTHY_MS) return undefined
    const problem = await troubleOf(source)
    if (problem === undefined) this.#healthyAt.set(source, now)
    return problem
  }

  /** Reads and stores the confirmations from the consumers of one source, or of all sources. */
  async confirm(name?: string): Promise<ConfirmResult> {
    const { pool } = this.#deps
    const all = await runAll(this.#named(name), ([one, { source }]) => confirm(pool, one, source))
    return {
      resolved: all.reduce((sum, one) => sum + one.resolved, 0),
      expired: all.reduce((sum, one) => sum + one.expired, 0),
    }
  }

  /** Sets overdue outcomes to unknown, finished runs to done, and old plans without an approval to plan_expired. */
  async sweep(name?: string): Promise<void> {
    await runAll(this.#named(name), ([one, { handled }]) => sweep(this.#deps, one, handled))
  }

  /** Publishes one approved message that was set aside. False: none waits, or replays are not possible now. */
  async publishSetAside(name: string): Promise<boolean> {
    const { pool } = this.#deps
    const one = this.#sources.get(name)
    if (one === undefined || (await this.#epoch.problem(pool)) !== undefined) return false
    // Checks consumers and brokers only if a message waits to be published.
    if (!(await hasApproved(pool, name)) || (await troubleOf(one)) !== undefined) return false
    return publishOneSetAside(this.#deps, name, one.source)
  }

  #named(name: string | undefined): readonly (readonly [string, ReplaySource])[] {
    const all = [...this.#sources]
    return name === undefined ? all : all.filter(([one]) => one === name)
  }
}

/** Returns why the consumers cannot accept more messages now, or undefined if they can. */
export async function troubleOf(replaySource: ReplaySource): Promise<string | undefined> {
  const { health, lag, maxLag = MAX_LAG } = replaySource
  try {
    await health?.({ signal: AbortSignal.timeout(HEALTH_MS) })
  } catch (error) {
    return `The health check of the consumers failed: ${error instanceof Error ? error.message : String(error)}`
  }
  const behind = (await lag?.()) ?? 0
  return behind > maxLag
    ? `The consumers are ${behind} messages behind. The limit is ${maxLag}.`
    : undefined
}
