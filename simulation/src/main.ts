import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { run } from './run.ts'
import { type Scenario, scenarioOf } from './scenario.ts'
import { shrink } from './shrink.ts'
import { runStorm } from './storm.ts'
import { type BrokenSeed, sweep } from './sweep.ts'

const HELP = `Usage:
  pnpm simulate [--seeds 1000] [--from 1] [--workers ${availableParallelism()}] [--stop-at-first]
      Plays seeded scenarios of faults and checks that no promise breaks.
  pnpm simulate --seed N [--trace]
      Plays one seed again; --trace prints everything that happened.
  pnpm simulate storm [--quick] [--out DIR]
      Plays outages against retry policies; prints a table and writes plots.
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '1000' },
    from: { type: 'string', default: '1' },
    workers: { type: 'string', default: String(availableParallelism()) },
    seed: { type: 'string' },
    trace: { type: 'boolean', default: false },
    'stop-at-first': { type: 'boolean', default: false },
    quick: { type: 'boolean', default: false },
    out: { type: 'string', default: 'storm' },
    help: { type: 'boolean', default: false },
  },
})

const print = (text: string) => void process.stdout.write(`${text}\n`)

async function playOne(seed: number): Promise<boolean> {
  const { violations, history, steps } = await run(scenarioOf(seed))
  if (values.trace) print(history.lines().join('\n'))
  for (const { invariant, text } of violations) print(`${invariant}  ${text}`)
  print(
    verdict(
      violations.length === 0,
      `${violations.length} violations in seed ${seed} (${steps} steps)`,
    ),
  )
  return violations.length === 0
}

async function playMany(): Promise<boolean> {
  const seeds = Number(values.seeds)
  const startedAt = performance.now()
  const { done, broken } = await sweep({
    from: Number(values.from),
    seeds,
    workers: Number(values.workers),
    stopAtFirst: values['stop-at-first'],
    onProgress: (count) => showProgress(count, seeds),
  })
  if (process.stderr.isTTY) process.stderr.write('\n')
  for (const { seed, violations } of broken.slice(0, 10)) {
    print(
      `seed ${seed}: ${violations.map(({ invariant, text }) => `${invariant} ${text}`).join('; ')}`,
    )
  }
  if (broken[0] !== undefined) await explain(broken[0])
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  print(verdict(broken.length === 0, `${broken.length} broken of ${done} seeds in ${seconds} s`))
  return broken.length === 0
}

function showProgress(done: number, seeds: number): void {
  if (process.stderr.isTTY) process.stderr.write(`\r${done} of ${seeds} seeds`)
}

/** The shortest story of how it broke, and how to see it again. */
async function explain({ seed, violations }: BrokenSeed): Promise<void> {
  const invariant = violations[0]?.invariant ?? ''
  const smallest = await shrink(scenarioOf(seed), invariant)
  const { history, violations: left } = await run(smallest)
  print(`\nSeed ${seed}, shrunk to ${describe(smallest)}:`)
  print(history.lines().join('\n'))
  for (const violation of left) print(`${violation.invariant}  ${violation.text}`)
  print(`\nThe whole run again: pnpm simulate --seed ${seed} --trace\n`)
}

function describe({ processes, messages, faults }: Scenario): string {
  return `${processes} processes, ${messages.length} messages, ${faults.length} faults`
}

const verdict = (isGood: boolean, figure: string) =>
  `${isGood ? 'PASS' : 'SHORT'} simulate ${figure}, goal 0`

async function main(): Promise<boolean> {
  if (values.help) {
    print(HELP)
    return true
  }
  if (positionals[0] === 'storm')
    return runStorm({ quick: values.quick, directory: values.out, print })
  if (positionals.length > 0) {
    print(`There is no '${positionals[0]}'.\n\n${HELP}`)
    return false
  }
  return values.seed === undefined ? playMany() : playOne(Number(values.seed))
}

process.exitCode = (await main()) ? 0 : 1
