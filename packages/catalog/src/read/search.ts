import { PAGE } from './check.ts'
import { compileStep } from './compile.ts'
import type { DeadLetterQuery } from './query.ts'
import { type Cursor, cursorText, type Reader, reading } from './sql.ts'

/** The cost of a search. */
export interface SearchLimits {
  /** Maximum time for one page. A step that would take longer is not started. */
  readonly budgetMs: number
  /** Rows of the first step, and the minimum of every step. */
  readonly rowsMin: number
  readonly rowsMax: number
}

/**
 * 150 ms: with the last step and the transaction, 95 % of the pages take less than 300 ms. The rest of the search
 * continues with the cursor. The first step is small, because most searches fill their page from the newest rows. 8,000
 * rows take about 80 ms.
 */
const LIMITS: SearchLimits = { budgetMs: 150, rowsMin: 500, rowsMax: 8_000 }

/** A page of a search. */
export interface SearchPage<R> {
  readonly rows: readonly R[]
  readonly nextCursor: string | undefined
  /** Set if the time ended before the page was full: all rows down to this time were compared. */
  readonly searchedTo: number | undefined
}

/** A row of a step. `id` is null in the only row of a step without a match. */
interface StepRow {
  readonly id: string | null
  readonly last_ms: number
  readonly frontier_ms: number | null
  readonly frontier_id: string | null
}

/** Compares the rows of the scope in steps, newest first, until the page is full or the time has ended. */
export async function searchPage<R extends { readonly id: string; readonly last_ms: number }>(
  reader: Reader,
  query: DeadLetterQuery,
  { budgetMs, rowsMin, rowsMax }: SearchLimits = LIMITS,
): Promise<SearchPage<R>> {
  const limit = query.limit ?? PAGE
  return reading(reader, async (run) => {
    const found: R[] = []
    const endsAt = performance.now() + budgetMs
    let { cursor } = query
    for (let rows = rowsMin; ; ) {
      const startedAt = performance.now()
      const rest = {
        ...query,
        limit: limit - found.length,
        ...(cursor === undefined ? {} : { cursor }),
      }
      const { text, values } = compileStep(rest, rows)
      const step = await run<StepRow>(text, values)
      found.push(...(step.filter(({ id }) => id !== null) as unknown as R[]))
      const frontier = frontierOf(step)
      if (found.length > limit) return pageUntil(found.slice(0, limit))
      if (frontier === undefined)
        return { rows: found, nextCursor: undefined, searchedTo: undefined }
      cursor = cursorText(frontier)
      if (found.length === limit) return { rows: found, nextCursor: cursor, searchedTo: undefined }
      const now = performance.now()
      const affordable = Math.floor((rows * (endsAt - now)) / (now - startedAt))
      if (affordable < rowsMin) return { rows: found, nextCursor: cursor, searchedTo: frontier.at }
      rows = Math.min(affordable, rows * GROWTH, rowsMax)
    }
  })
}

/** 4: few steps reach the maximum, and a page that two steps fill costs at most four times the rows it needs. */
const GROWTH = 4

function frontierOf([first]: readonly StepRow[]): Cursor | undefined {
  const { frontier_ms: at, frontier_id: id } = first ?? {}
  return typeof at === 'number' && typeof id === 'string' ? { at, id } : undefined
}

function pageUntil<R extends { readonly id: string; readonly last_ms: number }>(
  rows: readonly R[],
): SearchPage<R> {
  const last = rows.at(-1)
  const nextCursor = last === undefined ? undefined : cursorText({ at: last.last_ms, id: last.id })
  return { rows, nextCursor, searchedTo: undefined }
}
