/**
 * `pnpm check`: the gate. Runs every step and stops at the first that fails. `pnpm check types
 * lint` runs only the steps named.
 */
import { spawnSync } from 'node:child_process'
import { delimiter, join } from 'node:path'
import { ROOT } from './workspace.ts'

interface Step {
  readonly name: string
  readonly command: string
  /** What to do when it fails, where the output does not say so itself. */
  readonly remedy?: string
  /** Shows its output as it comes, also when all is well. */
  readonly loud?: true
}

// Types first: it also writes the declarations that lint, api and packages read. Then from quick
// to slow, so that the first complaint comes early.
const STEPS: readonly Step[] = [
  { name: 'types', command: 'tsc -b' },
  { name: 'format', command: 'biome format --error-on-warnings', remedy: 'run `pnpm format`' },
  { name: 'lint', command: 'oxlint --type-aware --deny-warnings' },
  { name: 'imports', command: 'node dev/check/imports.ts' },
  { name: 'purity', command: 'node dev/check/purity.ts' },
  {
    name: 'tests',
    command: 'vitest run --reporter=default --reporter=json --outputFile.json=.reports/tests.json',
    loud: true,
  },
  { name: 'api', command: 'node dev/check/api.ts' },
  { name: 'unused', command: 'knip --no-config-hints' },
  { name: 'packages', command: 'node dev/check/packages.ts' },
]

function chooseSteps(names: readonly string[]): readonly Step[] {
  const unknown = names.filter((name) => !STEPS.some((step) => step.name === name))
  if (unknown.length > 0) {
    console.error(`no step ${unknown.join(', ')}: there are ${STEPS.map((s) => s.name).join(', ')}`)
    process.exit(2)
  }
  return names.length > 0 ? STEPS.filter((step) => names.includes(step.name)) : STEPS
}

function run(step: Step): boolean {
  const startedAt = performance.now()
  const { status, stdout, stderr } = spawnSync(step.command, {
    cwd: ROOT,
    shell: true,
    stdio: step.loud ? 'inherit' : ['ignore', 'pipe', 'pipe'],
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    env: {
      ...process.env,
      PATH: `${join(ROOT, 'node_modules/.bin')}${delimiter}${process.env['PATH']}`,
    },
  })
  const ok = status === 0
  if (!ok) process.stdout.write(`${stdout ?? ''}${stderr ?? ''}`)
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${step.name.padEnd(9)} ${seconds.padStart(6)} s`)
  return ok
}

const steps = chooseSteps(process.argv.slice(2))
const failedAt = steps.findIndex((step) => !run(step))
const failed = steps[failedAt]
if (failed) {
  console.log(`\nstep "${failed.name}" failed: ${failed.remedy ?? 'see its output above'}`)
  console.log(`repeat it alone with \`pnpm check ${failed.name}\``)
}
const passed = failed ? failedAt : steps.length
console.log(`${failed ? 'SHORT' : 'PASS'} check ${passed} steps, goal ${steps.length}`)
process.exitCode = failed ? 1 : 0
