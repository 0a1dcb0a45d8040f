/** The page with the class of errors of real packages. */
import { SITUATIONS } from '../../classification/src/table.ts'
import { code, type Page, pageText, table } from './markdown.ts'

const HEAD = ['situation', 'class', 'code', 'decided by'] as const

/** Generates the page from the table that the tests of `classification` check. */
export function classificationPage(): Page {
  const packages = Object.entries(SITUATIONS).sort(([left], [right]) => (left < right ? -1 : 1))
  const blocks = packages.flatMap(([name, situations]) => [
    `## ${code(name)}`,
    table(
      HEAD,
      Object.entries(situations).map(([situation, row]) => [situation, ...cellsOf(row)]),
    ),
  ])
  const count = packages.reduce((sum, [, situations]) => sum + Object.keys(situations).length, 0)
  const intro = `These are ${count} errors of ${packages.length} packages, and the class that Redrive gives them. A test \
provokes each error with the real package. *Decided by* names the property of the error. An \
[unknown](../policy.md#classification) failure is retried, and quarantined if it repeats.`
  return {
    text: pageText('Classification', ['classification/src/table.ts'], [intro, ...blocks]),
    problems: [],
  }
}

type Row = NonNullable<NonNullable<(typeof SITUATIONS)[string]>[string]>

function cellsOf({
  class: failureClass,
  code: shown,
  by,
  timedOut,
  retryAfterMs,
}: Row): readonly string[] {
  const notes = [
    ...(timedOut ? ['timeout'] : []),
    ...(retryAfterMs === undefined ? [] : [`waits ${retryAfterMs} ms`]),
  ]
  const suffix = notes.length === 0 ? '' : ` (${notes.join(', ')})`
  return [
    `${failureClass}${suffix}`,
    shown === undefined ? '' : code(shown),
    by === undefined ? '' : code(by),
  ]
}
