/**
 * `pnpm proofs merge|nightly|release` runs a tier, `pnpm proofs NAME…` single proofs, and `pnpm
 * proofs` lists them. `--names TIER` prints the names as JSON, for workflows. Every proof ends with
 * a line `PASS …` or `SHORT …`; a tier runs all of its proofs and ends with a summary.
 */
import { spawn, spawnSync } from 'node:child_process'
import { setPriority } from 'node:os'
import { delimiter, join } from 'node:path'
import { ASIDE, formatSeconds, recordTiming, timesTable } from '../check/times.ts'
import { isMain, ROOT } from '../check/workspace.ts'
import { PROOFS, type Proof, TIERS, type Tier } from './table.ts'

export interface Result {
  readonly proof: Proof
  readonly ok: boolean
  readonly seconds: number
  readonly verdict: string
}

const isTier = (name: string): name is Tier => TIERS.some((tier) => tier === name)

/** Returns the proofs that the arguments name, each once; undefined after an unknown name. */
export function chooseProofs(names: readonly string[]): readonly Proof[] | undefined {
  const unknown = names.filter((name) => !isTier(name) && !PROOFS.some((p) => p.name === name))
  if (unknown.length > 0) {
    console.error(`Unknown proof or tier: ${unknown.join(', ')}. \`pnpm proofs\` lists them.`)
    return undefined
  }
  return PROOFS.filter(({ name, tier }) => names.includes(name) || names.includes(tier))
}

function list(): string {
  const sections = TIERS.map((tier) => {
    const proofs = PROOFS.filter((proof) => proof.tier === tier)
    const minutes = proofs.reduce((sum, proof) => sum + proof.minutes, 0)
    const rows = proofs.map(
      ({ name, minutes: own, shows }) =>
        `  ${name.padEnd(26)} ${`${own} min`.padStart(8)}  ${shows}`,
    )
    return [`${tier} (about ${Math.round(minutes)} min)`, ...rows].join('\n')
  })
  return `${sections.join('\n\n')}\n\nRun a tier or single proofs: pnpm proofs merge, pnpm proofs NAME…`
}

const SERVICES = join(ROOT, 'dev/services')

/** Starts the servers of `dev/services` and returns their addresses as variables for the examples. */
function startServers(servers: readonly string[]): Readonly<Record<string, string>> {
  const up = spawnSync(SERVICES, ['up', ...servers], { cwd: ROOT, stdio: 'inherit' })
  if (up.status !== 0)
    throw new Error(`dev/services could not start ${servers.join(', ')}. See its output above.`)
  const { stdout } = spawnSync(SERVICES, ['env'], { cwd: ROOT, encoding: 'utf8' })
  const pairs = [...stdout.matchAll(/^export (\w+)=(.*)$/gm)]
  return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value]))
}

/** Stops servers; a failure is reported, because the result of the proof is already known. */
function stopServers(servers: readonly string[]): void {
  const down = spawnSync(SERVICES, ['down', ...servers], { cwd: ROOT, stdio: 'inherit' })
  if (down.status !== 0)
    console.error(`dev/services could not stop ${servers.join(', ')}. See its output above.`)
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** Exit statuses that a shell reports for a program ended by a signal. */
const SIGNALLED: Readonly<Partial<Record<NodeJS.Signals, number>>> = { SIGINT: 130, SIGTERM: 143 }

/** The process groups of the commands that run. */
const running = new Set<number>()

function stopWithSignals(): void {
  for (const signal of SIGNALS) {
    process.once(signal, () => {
      for (const group of running) process.kill(-group, signal)
      process.exit(SIGNALLED[signal])
    })
  }
}

/** Where a proof prints, and with which priority it runs. */
interface Lane {
  readonly print: (text: string) => void
  readonly niceness?: number
}

const LIVE: Lane = { print: (text) => void process.stdout.write(text) }

/** Low, because the proofs of the other lanes measure times. */
const BACKGROUND_NICENESS = 10

/** Runs the command and prints its output; returns its exit status and its last PASS or SHORT line. */
async function runCommand(
  { command, servers = [] }: Proof,
  { print, niceness }: Lane,
): Promise<{ status: number; line: string }> {
  const path = [join(ROOT, 'node_modules/.bin'), process.env['PATH']].join(delimiter)
  const variables = servers.length > 0 ? startServers(servers) : {}
  const child = spawn(command, {
    cwd: ROOT,
    shell: true,
    // A separate process group, because the shell does not pass signals on to its programs.
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...variables, PATH: path },
  })
  const group = child.pid
  if (group !== undefined) {
    running.add(group)
    if (niceness !== undefined) setPriority(group, niceness)
  }
  let text = ''
  child.stderr.setEncoding('utf8').on('data', print)
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    print(chunk)
    // Enough for the last line, whatever the command prints.
    text = (text + chunk).slice(-64 * 1024)
  })
  const status = await new Promise<number>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve(code ?? 1))
  })
  if (group !== undefined) running.delete(group)
  return { status, line: text.match(/^(PASS|SHORT) .*$/gm)?.at(-1) ?? '' }
}

/**
 * Reports an error and continues: a server that does not start must not stop the other proofs of
 * the tier.
 */
function reportError(error: unknown): { status: number; line: string } {
  console.error(error)
  return { status: 1, line: '' }
}

async function play(proof: Proof, lane: Lane): Promise<Result> {
  lane.print(`\n=== ${proof.name}: ${proof.shows}\n$ ${proof.command}\n`)
  const startedAt = performance.now()
  const { status, line } = await runCommand(proof, lane).catch(reportError)
  if (proof.stops !== undefined) stopServers(proof.stops)
  const seconds = (performance.now() - startedAt) / 1_000
  const ok = status === 0
  // An exit status that contradicts the verdict line is a mistake in the program.
  const agrees = line === '' || line.startsWith(ok ? 'PASS' : 'SHORT')
  const own = `${ok ? 'PASS' : 'SHORT'} ${proof.name} exit status ${status}, goal 0`
  const verdict = agrees ? line || own : `SHORT ${proof.name} exit status ${status} after "${line}"`
  if (verdict !== line) lane.print(`${verdict}\n`)
  lane.print(`${proof.name} took ${formatSeconds(seconds)}\n`)
  const aside = lane === LIVE ? '' : ` ${ASIDE}`
  recordTiming({ name: `${proof.name}${aside}`, seconds })
  return { proof, ok: ok && agrees, seconds, verdict }
}

async function playInTurn(proofs: readonly Proof[]): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const proof of proofs) results.push(await play(proof, LIVE))
  return results
}

/** Plays proofs next to others. Prints the output of each at its end, so that it stays in one piece. */
async function playAside(
  proofs: readonly Proof[],
  priority: { readonly niceness?: number } = {},
): Promise<readonly Result[]> {
  const results: Result[] = []
  for (const proof of proofs) {
    const printed: string[] = []
    const lane = { print: (text: string) => void printed.push(text), ...priority }
    results.push(await play(proof, lane))
    process.stdout.write(printed.join(''))
  }
  return results
}

/** Plays each proof in its lane, and the lanes at the same time. Returns the results in the order of the proofs. */
export async function playInLanes(proofs: readonly Proof[]): Promise<readonly Result[]> {
  const inLane = (lane: Proof['lane']) => proofs.filter((proof) => proof.lane === lane)
  const aside = [
    playAside(inLane('processor'), { niceness: BACKGROUND_NICENESS }),
    playAside(inLane('packages')),
  ]
  const live = await playInTurn(inLane(undefined))
  const waitsFrom = performance.now()
  const results = [...live, ...(await Promise.all(aside)).flat()]
  const seconds = (performance.now() - waitsFrom) / 1_000
  recordTiming({ name: 'wait for the proofs in other lanes', seconds })
  return results.toSorted((a, b) => proofs.indexOf(a.proof) - proofs.indexOf(b.proof))
}

function summarize(title: string, results: readonly Result[], seconds: number): string {
  const passed = results.filter(({ ok }) => ok).length
  const isWhole = passed === results.length
  const times = results.map(({ proof, seconds: own }) => ({ name: proof.name, seconds: own }))
  const figure = `${passed} of ${results.length} proofs in ${formatSeconds(seconds)}`
  return [
    '',
    ...results.map(({ proof, verdict }) => `${proof.name.padEnd(26)} ${verdict}`),
    '',
    timesTable('Time of each proof', times),
    `${isWhole ? 'PASS' : 'SHORT'} proofs ${title} ${figure}, goal all`,
  ].join('\n')
}

async function main(args: readonly string[]): Promise<number> {
  if (args.length === 0) {
    console.log(list())
    return 0
  }
  const names = args.filter((arg) => arg !== '--names')
  const proofs = chooseProofs(names)
  if (proofs === undefined) return 2
  if (names.length < args.length) {
    console.log(JSON.stringify(proofs.map(({ name }) => name)))
    return 0
  }
  stopWithSignals()
  const startedAt = performance.now()
  // The benchmarks of the release tier need a machine without other work.
  const isRelease = proofs.some(({ tier }) => tier === 'release')
  const results = await (isRelease ? playInTurn(proofs) : playInLanes(proofs))
  const seconds = (performance.now() - startedAt) / 1_000
  console.log(summarize(names.join(' '), results, seconds))
  return results.every(({ ok }) => ok) ? 0 : 1
}

if (isMain(import.meta)) process.exitCode = await main(process.argv.slice(2))
