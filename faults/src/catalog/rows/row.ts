import { type Broken, brokenIf } from '../../drill.ts'
import { atScale, type ByScale } from '../../scenario.ts'
import type { Ending } from '../audit.ts'
import type { CatalogConsumerOptions, Kind } from '../options.ts'
import type { Stage } from '../stage.ts'

/** A row of the table of crash points, on one source. */
export interface Row {
  readonly name: string
  readonly story: string
  readonly kind: Kind
  /** Whether it is part of `--smoke`, which plays each death once, on one source. */
  readonly isInSmoke?: boolean
  /** Too long for `quick`, and much like another one. */
  readonly isOnlyFull?: boolean
  /** The catalog is restored: it needs a database of its own. */
  readonly hasOwnCatalog?: boolean
  /** What the first consumer is told on top. */
  readonly consumer?: Partial<CatalogConsumerOptions>
  play(stage: Stage): Promise<Ending>
}

const KINDS: readonly Kind[] = ['rabbitmq', 'kafka', 'postgres']

/** The source on which `--smoke` plays the rows that exist on every source. */
const SMOKE_KIND: Kind = 'rabbitmq'

/** The same row on every source. */
export const onEach = (row: Omit<Row, 'kind'>, kinds: readonly Kind[] = KINDS): readonly Row[] =>
  kinds.map((kind) => ({
    ...row,
    kind,
    name: `${row.name}-${kind}`,
    isInSmoke: row.isInSmoke === true && kind === SMOKE_KIND,
  }))

/** So many items for each crash: enough for the death to be before, among or behind them. */
export const ITEMS = 5

/** How often a crash is repeated, each time at another item. */
const TIMES: ByScale<number> = { quick: 2, full: 20 }

export const timesOf = ({ world }: Stage): number => atScale(TIMES, world.scale)

/** One slice of the dead letters for each time. */
function slicesOf(ids: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / ITEMS) }, (_, at) =>
    ids.slice(at * ITEMS, (at + 1) * ITEMS),
  )
}

/** Dead letters for so many times, in the catalog. */
export async function staged(stage: Stage, times: number): Promise<readonly (readonly string[])[]> {
  await stage.fill(times * ITEMS)
  await stage.ingest()
  return slicesOf(await stage.deadLetters())
}

export const notDone = (isDone: boolean, text: string): readonly Broken[] =>
  brokenIf([!isDone, 'not drained', `not in time: ${text}`])
