/**
 * `pnpm mutate` changes core in thousands of small ways, one at a time, and checks whether a test
 * fails. Survivors are listed in .reports/mutate/survivors.md. See docs/mutation.md.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { delimiter, join, relative } from 'node:path'
import { parseArgs } from 'node:util'
import { ROOT } from '../check/workspace.ts'
import { type FileScore, type Report, scoreOf, summarise, survivorsOf } from './report.ts'

const GOAL_PERCENT = 97
const SOURCES = 'packages/core/src'
const REPORT = join(ROOT, '.reports/mutate/mutation.json')
const SURVIVORS = join(ROOT, '.reports/mutate/survivors.md')

const { values } = parseArgs({
  options: {
    /** Files to mutate, by the end of their path: `--only decide.ts --only policy/retry.ts`. */
    only: { type: 'string', multiple: true, default: [] },
    /**
     * Leaves out code that runs once when a module is loaded, because it cannot be assigned to
     * single tests.
     */
    quick: { type: 'boolean', default: false },
    /** Reuses the results of the last such run where neither code nor tests have changed. */
    incremental: { type: 'boolean', default: false },
    workers: { type: 'string', default: String(availableParallelism()) },
  },
})

function chosenFiles(): readonly string[] {
  const all = globSync(`${SOURCES}/**/*.ts`, { cwd: ROOT })
  const chosen = all.filter((file) => values.only.some((end) => file.endsWith(`/${end}`)))
  if (values.only.length > 0 && chosen.length === 0) {
    console.error(`no file in ${SOURCES} ends in ${values.only.join(' or ')}`)
    process.exit(2)
  }
  return chosen
}

function mutate(): Report | undefined {
  const files = chosenFiles()
  const { status } = spawnSync(
    'stryker',
    [
      'run',
      'dev/mutate/stryker.json',
      ...['--concurrency', values.workers],
      ...(files.length > 0 ? ['--mutate', files.join(',')] : []),
      ...(values.quick ? ['--ignoreStatic'] : []),
      ...(values.incremental ? ['--incremental'] : []),
    ],
    {
      cwd: ROOT,
      // Its progress goes to stderr, so that stdout contains only the result.
      stdio: ['ignore', 2, 2],
      env: {
        ...process.env,
        PATH: `${join(ROOT, 'node_modules/.bin')}${delimiter}${process.env['PATH']}`,
      },
    },
  )
  return status === 0 ? (JSON.parse(readFileSync(REPORT, 'utf8')) as Report) : undefined
}

function tableOf(scores: readonly FileScore[]): string {
  const rows = scores.map(
    ({ file, killed, survived, percent }) =>
      `| ${file.replace(`${SOURCES}/`, '')} | ${killed + survived} | ${survived} | ${percent.toFixed(1)} |`,
  )
  return ['| file | mutants | survived | killed % |', '| --- | ---: | ---: | ---: |', ...rows].join(
    '\n',
  )
}

mkdirSync(join(ROOT, '.reports/mutate'), { recursive: true })
rmSync(REPORT, { force: true })
const report = mutate()
const total = report === undefined ? undefined : scoreOf(report)
if (report !== undefined && total !== undefined) {
  const table = tableOf([...summarise(report), total])
  const survivors = survivorsOf(report).map((line) => `- ${line}`)
  writeFileSync(SURVIVORS, `${table}\n\n${survivors.join('\n')}\n`)
  console.log(table)
  console.log(`survivors: ${relative(ROOT, SURVIVORS)}`)
}
const percent = total?.percent ?? 0
const isEnough = percent >= GOAL_PERCENT
console.log(
  `${isEnough ? 'PASS' : 'SHORT'} mutate ${percent.toFixed(1)} % killed, goal ${GOAL_PERCENT} %`,
)
process.exitCode = isEnough ? 0 : 1
