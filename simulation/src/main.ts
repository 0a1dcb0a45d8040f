import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { runGiveUp } from './give-up.ts'
import { runGrid } from './grid/grid.ts'
import { huntAll } from './hunt.ts'
import { MUTANTS } from './mutants.ts'
import { run } from './run.ts'
import { type Scenario, scenarioOf } from './scenario.ts'
import { shrink } from './shrink.ts'
import { runStorm } from './storm.ts'
import { type BrokenSeed, sweep, type SweepOptions } from './sweep.ts'

const HELP = `Usage:
  pnpm simulate [--seeds 1000] [--from 1] [--workers ${availableParallelism()}] [--stop-at-first]
      Plays seeded scenarios with faults and checks that no promise breaks.
      --from is the first seed (default 1); use the next seed to continue a run.
  pnpm simulate --seed N [--trace]
      Repeats one seed; --trace prints every event.
  pnpm simulate --mutants [--workers ${availableParallelism()}]
      Adds mistakes to a copy of the sources, and checks that the simulator finds each of them.
  pnpm simulate storm [--quick] [--out DIR]
      Plays outages against retry policies; prints a table and writes plots.
  pnpm simulate storm --grid [--quick]
      Plays outages against the default policy, at every arrival rate, number of consumers and timeout.
  pnpm simulate give-up [--quick]
      Plays a permanently failing message among good ones, at every arrival rate and outage.
`

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        seeds: { type: 'string', default: '1000' },
        from: { type: 'string', default: '1' },
        workers: { type: 'string', default: String(availableParallelism()) },
        seed: { type: 'string' },
        trace: { type: 'boolean', default: false },
        'stop-at-first': { type: 'boolean', default: false },
        mutants: { type: 'boolean', default: false },
        grid: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        out: { type: 'string', default: 'storm' },
        help: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`)
  }
}

type Values = ReturnType<typeof parse>['values']

const print = (text: string) => void process.stdout.write(`${text}\n`)

/** An error of the command line. Its message is shown without a stack. */
class UsageError extends Error {}

function wholeNumber(option: string, text: string): number {
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new UsageError(`--${option} must be a whole number above 0, but is "${text}".`)
}

async function playOne(seed: number, values: Values): Promise<boolean> {
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

async function playMany(values: Values): Promise<boolean> {
  const seeds = wholeNumber('seeds', values.seeds)
  const from = wholeNumber('from', values.from)
  const range = `seeds ${from} to ${from + seeds - 1}`
  print(`Playing ${range}.`)
  const startedAt = performance.now()
  const { done, broken } = await sweep({
    from,
    seeds,
    workers: wholeNumber('workers', values.workers),
    stopAtFirst: values['stop-at-first'],
    onProgress: progressOf(seeds),
  })
  if (process.stderr.isTTY) process.stderr.write('\n')
  for (const { seed, violations } of broken.slice(0, 10)) {
    print(
      `seed ${seed}: ${violations.map(({ invariant, text }) => `${invariant} ${text}`).join('; ')}`,
    )
  }
  if (broken[0] !== undefined) await explain(broken[0])
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  const figure = `${broken.length} broken of ${done} seeds in ${seconds} s, ${range}`
  const isGood = broken.length === 0 && done === seeds
  print(verdict(isGood, figure))
  return isGood
}

async function playMutants(values: Values): Promise<boolean> {
  const startedAt = performance.now()
  const played = await huntAll(MUTANTS, {
    workers: wholeNumber('workers', values.workers),
    onPlayed({ mutant, isCaught, output, seconds }, done) {
      const word = isCaught ? 'caught  ' : 'SURVIVED'
      print(`[${done}/${MUTANTS.length}] ${word} ${mutant.name}, ${seconds.toFixed(0)} s`)
      if (!isCaught) print(output.replace(/^/gm, '  '))
    },
  })
  const survivors = played.filter(({ isCaught }) => !isCaught).length
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0)
  const figure = `--mutants ${survivors} of ${played.length} mutants survived in ${seconds} s`
  print(verdict(survivors === 0, figure))
  return survivors === 0
}

/** Returns a function that shows the progress: all the time in a terminal, otherwise a line for each tenth. */
function progressOf(seeds: number): SweepOptions['onProgress'] {
  let tenths = 0
  return (done, broken) => {
    const line = `${done} of ${seeds} seeds, ${broken} broken`
    if (process.stderr.isTTY) process.stderr.write(`\r${line}`)
    const reached = Math.floor((done * 10) / seeds)
    if (process.stderr.isTTY || reached === tenths) return
    tenths = reached
    process.stderr.write(`${line}\n`)
  }
}

/** Prints the smallest scenario that breaks the promise, and the command to repeat the run. */
async function explain({ seed, violations }: BrokenSeed): Promise<void> {
  const invariant = violations[0]?.invariant ?? ''
  const smallest = await shrink(scenarioOf(seed), invariant)
  const { history, violations: left } = await run(smallest)
  print(`\nSeed ${seed}, shrunk to ${describe(smallest)}:`)
  print(history.lines().join('\n'))
  for (const violation of left) print(`${violation.invariant}  ${violation.text}`)
  print(`\nRepeat the whole run with: pnpm simulate --seed ${seed} --trace\n`)
}

function describe({ processes, messages, faults }: Scenario): string {
  return `${processes} processes, ${messages.length} messages, ${faults.length} faults`
}

const verdict = (isGood: boolean, figure: string) =>
  `${isGood ? 'PASS' : 'SHORT'} simulate ${figure}, goal 0`

async function main(args: readonly string[]): Promise<boolean> {
  const { values, positionals } = parse(args)
  if (values.help) {
    print(HELP)
    return true
  }
  if (positionals[0] === 'give-up') return runGiveUp({ quick: values.quick, print })
  if (positionals[0] === 'storm' && values.grid) return runGrid({ quick: values.quick, print })
  if (positionals[0] === 'storm')
    return runStorm({ quick: values.quick, directory: values.out, print })
  if (positionals.length > 0) {
    throw new UsageError(`There is no command "${positionals[0]}".\n\n${HELP}`)
  }
  if (values.mutants) return playMutants(values)
  if (values.seed !== undefined) return playOne(wholeNumber('seed', values.seed), values)
  return playMany(values)
}

/** Prints a verdict as the last line in every case and sets the matching exit code. */
function fail(error: unknown): never {
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error))
  process.stderr.write(`${error instanceof UsageError ? message : stack}\n`)
  const reason = (message.split('\n')[0] ?? '').replace(/[.:]$/, '')
  print(verdict(false, `did not finish: ${reason}`))
  process.exit(1)
}

process.on('uncaughtException', fail)
process.exitCode = (await main(process.argv.slice(2)).catch(fail)) ? 0 : 1
