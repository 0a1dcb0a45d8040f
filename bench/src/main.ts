// node bench/src/main.ts NAME [--quick] [--only PART] [--rounds N] [--seed N] [--minutes N] [--json FILE]
// Exit code: 0 every goal met, 1 a goal fell short, 2 the command was wrong.
// The last line is the verdict: PASS or SHORT, the name, the figure and the goal.
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import {
  type BenchCase,
  type Compared,
  compare,
  type OpenGauge,
  type Overrides,
} from './comparison.ts'
import type { Gauge } from './gauge.ts'
import { thisMachine } from './machine.ts'
import { gaugeLines, machineLine, selfCheckLine, table, verdictLines } from './report.ts'
import { exitCode } from './verdict.ts'

/** Loaded by name, so that a broker's client is not in the process of another benchmark. */
const CASES = new Map<string, () => Promise<{ bench: BenchCase }>>([
  ['catalog', () => import('./cases/catalog.ts')],
  ['core', () => import('./cases/core.ts')],
  ['file-store', () => import('./cases/file-store.ts')],
  ['emission', () => import('./cases/emission.ts')],
  ['growth', () => import('./cases/growth.ts')],
  ['kafka', () => import('./cases/kafka.ts')],
  ['kafka-poison', () => import('./cases/kafka-poison.ts')],
  ['postgres', () => import('./cases/postgres.ts')],
  ['rabbitmq', () => import('./cases/rabbitmq.ts')],
  ['redis', () => import('./cases/redis.ts')],
  ['server', () => import('./cases/server.ts')],
  ['rabbitmq-telemetry', () => import('./cases/rabbitmq-telemetry.ts')],
  ['sqs', () => import('./cases/sqs.ts')],
  ['rabbitmq-memory', () => import('./cases/rabbitmq-memory.ts')],
])

/**
 * V8 starts with a small young generation and grows it when objects survive. So a candidate that
 * keeps data makes its neighbours' garbage outgrow the cache. cockatiel cost about 670 ns alone and
 * 890 ns next to opossum. With the size fixed at that of a busy service, both cost the same.
 */
const PINNED_HEAP = ['--min-semi-space-size=16', '--max-semi-space-size=16']
/** Allows a benchmark that fills a queue to collect its own garbage before the timing. */
const FLAGS = [...PINNED_HEAP, '--expose-gc']

interface Command extends Overrides {
  readonly name: string
  readonly open: () => Promise<{ bench: BenchCase }>
  readonly json: string | undefined
  readonly only: string | undefined
}

process.exitCode = await main(process.argv.slice(2)).catch(fail)

async function main(args: string[]): Promise<number> {
  const command = parse(args)
  if (typeof command === 'string') return refuse(command)
  if (!FLAGS.every((flag) => process.execArgv.includes(flag))) return runAgain(args)
  const bench = limitedTo((await command.open()).bench, command)
  if (typeof bench === 'string') return refuse(bench)
  print(`${bench.summary}\n${machineLine(thisMachine())}`)
  if (command.quick)
    print('Quick run: it only shows that the benchmark works. Do not quote its figures.')
  const compared = await compareAll(bench, command)
  const gauges = await gaugeAll(bench, command)
  return conclude(compared, gauges, command)
}

/** Returns only the gauge that `--only` names, or a sentence that describes its error. */
function limitedTo(bench: BenchCase, { name, only }: Command): BenchCase | string {
  if (only === undefined) return bench
  const gauge: OpenGauge | undefined = bench.only?.open(only)
  if (gauge !== undefined) return { ...bench, comparisons: [], gauges: [gauge] }
  const names = bench.only?.names ?? []
  return names.length === 0
    ? `The benchmark "${name}" has no parts for --only`
    : `--only must be one of: ${names.join(', ')}; but is "${only}"`
}

/** Reports an exception as SHORT, because nothing was measured. */
function fail(error: unknown): number {
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error))
  process.stderr.write(`${stack}\n`)
  print(`SHORT bench did not finish: ${message.split('\n')[0] ?? ''}, goal all goals met`)
  return 1
}

function runAgain(args: readonly string[]): number {
  const flags = [...process.execArgv, ...FLAGS]
  const child = spawnSync(process.execPath, [...flags, import.meta.filename, ...args], {
    stdio: 'inherit',
  })
  if (child.error) throw child.error
  if (child.status === null)
    throw new Error(`The benchmark process ended with ${child.signal ?? 'an unknown signal'}.`)
  return child.status
}

async function compareAll(bench: BenchCase, overrides: Overrides): Promise<Compared[]> {
  const compared: Compared[] = []
  for (const open of bench.comparisons) {
    const result = await compare(await open(overrides), overrides)
    compared.push(result)
    print(`\n${section(result)}`)
  }
  return compared
}

async function gaugeAll(bench: BenchCase, overrides: Overrides): Promise<Gauge[]> {
  const gauges: Gauge[] = []
  for (const open of bench.gauges ?? []) {
    const gauge = await open(overrides)
    gauges.push(gauge)
    print(`\n${gauge.name}: ${gauge.summary}\n${gauge.details}`)
  }
  return gauges
}

function section({ comparison, options, measurement, selfChecks }: Compared): string {
  const { rounds, sampleMs, seed } = options
  return [
    `${comparison.name}: ${comparison.summary}`,
    `${rounds} interleaved rounds, samples of ${sampleMs} ms, seed ${seed}`,
    table(measurement, comparison.baseline),
    ...selfChecks.map((check) => selfCheckLine(options.twinOf, check)),
  ].join('\n')
}

/** Prints the verdicts last. Returns the exit code. */
function conclude(
  compared: readonly Compared[],
  gauges: readonly Gauge[],
  { name: command, json }: Command,
): 0 | 1 {
  const machine = thisMachine()
  if (json !== undefined)
    writeFileSync(json, JSON.stringify({ machine, compared, gauges }, null, 2))
  const judged = compared.map(({ comparison: { name }, verdicts }) => ({ name, verdicts }))
  const lines = [...verdictLines(judged), ...gauges.flatMap(gaugeLines)]
  // Indented, so that only the last line of a run starts with its verdict.
  const goals = lines.map((line) => `  ${line}`).join('\n')
  print(`\nAfterwards: ${machineLine(machine)}\n\n${goals}`)
  const verdicts = compared.flatMap((one) => one.verdicts)
  const limits = gauges.flatMap((one) => one.verdicts)
  const counted = [...verdicts.filter(({ goal }) => !goal.aim), ...limits]
  const met = counted.filter(({ kind }) => kind === 'met').length
  const code = met === counted.length ? exitCode(verdicts) : 1
  const figure = `${met} of ${counted.length} goals met`
  print(`${code === 0 ? 'PASS' : 'SHORT'} bench ${command} ${figure}, goal all`)
  return code
}

/** Returns the command, or a sentence that describes its error. */
function parse(args: string[]): Command | string {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        quick: { type: 'boolean', default: false },
        rounds: { type: 'string' },
        seed: { type: 'string' },
        minutes: { type: 'string' },
        json: { type: 'string' },
        only: { type: 'string' },
      },
    })
    return {
      name: positionals[0] ?? '',
      open: caseNamed(positionals[0]),
      quick: values.quick,
      json: values.json,
      only: values.only,
      rounds: positiveInteger('--rounds', values.rounds),
      seed: positiveInteger('--seed', values.seed),
      minutes: positiveInteger('--minutes', values.minutes),
    }
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

function caseNamed(name: string | undefined): Command['open'] {
  const open = CASES.get(name ?? '')
  if (open !== undefined) return open
  const wrong =
    name === undefined ? 'The name of a benchmark is missing' : `There is no benchmark "${name}"`
  throw new RangeError(`${wrong}. Choose one of: ${[...CASES.keys()].join(', ')}`)
}

function positiveInteger(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const value = Number(text)
  if (Number.isSafeInteger(value) && value > 0) return value
  throw new RangeError(`${option} must be a whole number above 0, but is "${text}"`)
}

function refuse(sentence: string): number {
  process.stderr.write(`${sentence}\n`)
  print(`SHORT bench was not run: ${sentence.split('\n')[0] ?? ''}, goal all goals met`)
  return 2
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
