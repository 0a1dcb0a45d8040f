import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { ROOT, services } from '@redrive/dev-support'
import { beforeAll, expect, it } from 'vitest'
import { parse, stringify } from 'yaml'
import { knownMetrics } from './known-metrics.ts'

interface Alias {
  readonly record: string
  readonly expr: string
}

const FILE = join(ROOT, 'ops/prometheus/redrive.aliases.yaml')
const file = parse(readFileSync(FILE, 'utf8')) as {
  readonly groups: readonly { readonly rules: readonly Alias[] }[]
}
const aliases = file.groups.flatMap(({ rules }) => rules)

let promtool = 'promtool'
beforeAll(async () => {
  await services('up', 'prometheus')
  promtool = join(dirname(await services('do', 'prometheus', 'path')), 'promtool')
})

it('the aliases use only metrics that exist, and no name that exists', () => {
  const known = knownMetrics()
  const used = aliases.flatMap(({ expr }) =>
    [...expr.matchAll(/redrive_\w+/g)].map(([name]) => name),
  )
  expect(used.filter((name) => !known.has(name))).toEqual([])
  expect(aliases.filter(({ record }) => known.has(record))).toEqual([])
})

it.each(aliases)('$record has the value of its metric', ({ record, expr }) => {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-aliases-'))
  const [, metric = '', selector = '{}'] = /(redrive_\w+)(\{.*?\})?/.exec(expr) ?? []
  const labels = selector.replace('{', '{source="orders",').replace(',}', '}')
  const test = {
    rule_files: [FILE],
    tests: [
      {
        interval: '1m',
        input_series: [{ series: `${metric}${labels}`, values: '7x5' }],
        promql_expr_test: [
          { expr: `sum(${record})`, eval_time: '3m', exp_samples: [{ labels: '{}', value: 7 }] },
        ],
      },
    ],
  }
  writeFileSync(join(folder, 'test.yaml'), stringify(test))
  const { status, stdout, stderr } = spawnSync(promtool, ['test', 'rules', 'test.yaml'], {
    cwd: folder,
    encoding: 'utf8',
  })
  expect({ status, output: `${stdout}${stderr}` }).toMatchObject({ status: 0 })
})

it('the size of the dead-letter queue has the label that it is known for', () => {
  const size = aliases.find(({ record }) => record === 'event_dlq_queue_size')
  expect(size?.expr).toContain('"dlq_topic"')
})
