import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../check/workspace.ts'
import { DASHBOARDS } from '../dashboards/grafana.ts'
import { OF_CATALOG, SERVER_LABELS } from '../dashboards/server-metrics.ts'

const panels = DASHBOARDS.flatMap(({ name, sections }) =>
  sections.flatMap((section) => section.panels.map((panel) => ({ ...panel, of: name }))),
)

/** The metrics that the server declares. */
const declared = ['metrics', 'catalog-metrics'].flatMap((name) => {
  const text = readFileSync(join(ROOT, `packages/server/src/http/${name}.ts`), 'utf8')
  return [...text.matchAll(/'(redrive_[a-z_]+)'/g)].map(([, metric = '']) => metric)
})

test('the dashboards use only metrics that the server declares', () => {
  const unknown = Object.keys(SERVER_LABELS).filter((name) => !declared.includes(name))
  // Prometheus writes ALERTS.
  expect(unknown).toEqual(['ALERTS'])
})

test('a legend shows only labels that its query keeps', () => {
  const wrong = panels.flatMap(({ of, title, queries }) =>
    queries.flatMap(({ expr, legend }) => {
      const kept = [...expr.matchAll(/\bby \(([a-z_, ]+)\)/g)].flatMap(([, by = '']) =>
        by.split(', '),
      )
      // A sum of a chart of all processes keeps the labels of the scrape.
      const all = kept.length === 0 ? ['instance'] : kept
      return [...legend.matchAll(/\{\{(\w+)\}\}/g)]
        .filter(([, label = '']) => !all.includes(label))
        .map(([, label]) => `${of}, ${title}: ${label}`)
    }),
  )
  expect(wrong).toEqual([])
})

test('the values of the catalog are not added over the processes of the server', () => {
  const added = panels
    .flatMap(({ queries }) => queries.map(({ expr }) => expr))
    .filter((expr) =>
      [...OF_CATALOG].some((name) =>
        new RegExp(`sum( by \\([a-z_, ]*\\))? ?\\((increase\\(|rate\\()?${name}\\b`).test(expr),
      ),
    )
  expect(added).toEqual([])
})

test('each panel of a dashboard has another place, and explains itself', () => {
  for (const { name, sections } of DASHBOARDS) {
    for (const section of sections) {
      const titles = section.panels.map(({ title }) => title)
      expect([name, new Set(titles).size]).toEqual([name, titles.length])
    }
  }
  expect(panels.filter(({ meaning }) => !meaning.endsWith('.')).map(({ title }) => title)).toEqual(
    [],
  )
})
