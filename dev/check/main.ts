/**
 * `pnpm check` is the gate. It runs every step and stops at the first failure. `pnpm check types
 * lint` runs only the named steps. `pnpm check --changed [BASE]` runs types, format, lint and the
 * tests that the change since BASE reaches. Default of BASE: the uncommitted changes, and on a
 * branch the difference from main.
 */
import { BaseError } from './changed/files.ts'
import { changedSteps } from './changed/steps.ts'
import { runSteps, type Step } from './steps.ts'
import { slowestFiles, timesTable } from './times.ts'

// Types first, because it also writes the declarations that lint, api and packages read. Then from
// fast to slow, so that the first failure shows early.
const STEPS: readonly Step[] = [
  { name: 'types', command: 'tsc -b' },
  // The package of the server contains it, so it is also a part of the step `packages`.
  { name: 'console', command: 'pnpm --filter @redrive/console build' },
  { name: 'format', command: 'biome format --error-on-warnings', remedy: 'run `pnpm format`' },
  { name: 'lint', command: 'oxlint --type-aware --deny-warnings' },
  { name: 'imports', command: 'node dev/check/imports.ts' },
  { name: 'purity', command: 'node dev/check/purity.ts' },
  { name: 'notes', command: 'node dev/changelog/main.ts --check' },
  {
    name: 'reference',
    command: 'node --conditions=@redrive/source dev/reference/main.ts --check',
  },
  { name: 'examples', command: 'node dev/check/examples.ts' },
  // Fails at a link that leads nowhere.
  { name: 'site', command: 'NODE_ENV=production vitepress build docs' },
  { name: 'unused', command: 'knip --no-config-hints' },
  { name: 'packages', command: 'node dev/check/packages.ts' },
  { name: 'api', command: 'node dev/check/api.ts' },
  {
    name: 'tests',
    command: 'vitest run --reporter=default --reporter=json --outputFile.json=.reports/tests.json',
    loud: true,
  },
]

function chooseSteps(args: readonly string[]): readonly Step[] {
  if (args[0] === '--changed') return chooseChanged(args.slice(1))
  const unknown = args.filter((name) => !STEPS.some((step) => step.name === name))
  if (unknown.length > 0) {
    const known = STEPS.map(({ name }) => name).join(', ')
    console.error(`Unknown step: ${unknown.join(', ')}. Steps: ${known}.`)
    process.exit(2)
  }
  return args.length > 0 ? STEPS.filter((step) => args.includes(step.name)) : STEPS
}

function chooseChanged([base, ...more]: readonly string[]): readonly Step[] {
  try {
    if (more.length > 0 || base?.startsWith('-')) {
      throw new BaseError('--changed accepts at most one commit and no step names.')
    }
    return changedSteps(STEPS, base)
  } catch (error) {
    if (!(error instanceof BaseError)) throw error
    console.error(`${error.message} Usage: pnpm check --changed [BASE]`)
    process.exit(2)
  }
}

const isChanged = process.argv[2] === '--changed'
const steps = chooseSteps(process.argv.slice(2))
const { times, failed } = runSteps(steps)
if (failed) {
  console.log(`\nstep "${failed.name}" failed: ${failed.remedy ?? 'see its output above'}`)
  if (!isChanged) console.log(`repeat it alone with \`pnpm check ${failed.name}\``)
}
// `.ci/run` prints one table for all programs at its end.
if (process.env['REDRIVE_TIMES'] === undefined && times.length > 1) {
  if (times.some(({ name }) => name === 'tests')) console.log(`\n${slowestFiles()}`)
  console.log(`\n${timesTable('Time of each step', times)}`)
}
const passed = failed ? times.length - 1 : steps.length
if (steps.length === 0) console.log('No step is affected by the change.')
console.log(`${failed ? 'SHORT' : 'PASS'} check ${passed} steps, goal ${steps.length}`)
process.exitCode = failed ? 1 : 0
