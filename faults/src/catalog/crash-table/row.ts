import { brokenIf, type Violation } from '../../evidence/evidence.ts'
import { atScale, type ByScale } from '../../harness/scenario.ts'
import type { ExpectedState } from '../audit.ts'
import type { CatalogConsumerOptions, Kind } from '../options.ts'
import type { Stage } from '../stage.ts'

/** A row of the table of crash points, for one source. */
export interface Row {
  readonly name: string
  readonly story: string
  readonly kind: Kind
  /** Whether the row is part of `--smoke`, which plays each death once, on one source. */
  readonly isInSmoke?: boolean
  /** Whether `quick` leaves the row out: it takes long and resembles another one. */
  readonly isOnlyFull?: boolean
  /** Whether the row restores the catalog and so needs a separate database. */
  readonly hasOwnCatalog?: boolean
  /** Additional options of the first consumer. */
  readonly consumer?: Partial<CatalogConsumerOptions>
  play(stage: Stage): Promise<ExpectedState>
}

const KINDS: readonly Kind[] = ['rabbitmq', 'kafka', 'postgres']

/** The source on which `--smoke` plays the rows that exist on every source. */
const SMOKE_KIND: Kind = 'rabbitmq'

/** Creates the same row for every source. */
export const onEach = (row: Omit<Row, 'kind'>, kinds: readonly Kind[] = KINDS): readonly Row[] =>
  kinds.map((kind) => ({
    ...row,
    kind,
    name: `${row.name}-${kind}`,
    isInSmoke: row.isInSmoke === true && kind === SMOKE_KIND,
  }))

/** Items for each crash. With 5 the death can be before, between or after them. */
export const ITEMS = 5

/** Number of times a crash is repeated, each time at another item. */
const TIMES: ByScale<number> = { quick: 2, full: 20 }

export const timesOf = ({ world }: Stage): number => atScale(TIMES, world.scale)

/** One slice of the dead letters for each time. */
function slicesOf(ids: readonly string[]): readonly (readonly string[])[] {
  return Array.from({ length: Math.ceil(ids.length / ITEMS) }, (_, at) =>
    ids.slice(at * ITEMS, (at + 1) * ITEMS),
  )
}

/** Puts dead letters for this number of times into the catalog. */
export async function staged(stage: Stage, times: number): Promise<readonly (readonly string[])[]> {
  await stage.fill(times * ITEMS)
  await stage.ingest()
  return slicesOf(await stage.deadLetters())
}

export const notDone = (isDone: boolean, text: string): readonly Violation[] =>
  brokenIf([!isDone, 'not drained', `not finished in time: ${text}`])
