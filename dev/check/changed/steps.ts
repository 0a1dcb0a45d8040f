import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { PROOFS } from '../../proofs/table.ts'
import type { Step } from '../steps.ts'
import { ROOT } from '../workspace.ts'
import { changedFiles } from './files.ts'
import { readGraph } from './graph.ts'
import { type Selection, select } from './select.ts'

/** Returns the steps of `pnpm check --changed`, each limited to the change where its tool allows it. */
export function changedSteps(all: readonly Step[], base: string | undefined): readonly Step[] {
  const changed = changedFiles(base)
  const existing = changed.filter((file) => existsSync(join(ROOT, file)))
  const sources = existing.filter((file) => file.endsWith('.ts'))
  const merge = PROOFS.filter(({ tier }) => tier === 'merge')
  const selection = select(changed, readGraph(ROOT), merge)
  report(changed, selection)
  const limited: readonly (Step | undefined)[] = all.map((step) => {
    switch (step.name) {
      case 'format':
        return onFiles(
          step,
          existing.filter((file) => /\.(ts|jsonc?)$/.test(file)),
        )
      case 'lint':
        return onFiles(step, sources)
      case 'types':
      case 'imports':
      case 'purity':
        return changed.some((file) => file.endsWith('.ts')) ? step : undefined
      case 'tests':
        return testsOf(step, selection)
      default:
        return undefined
    }
  })
  return limited.filter((step) => step !== undefined)
}

function onFiles(step: Step, files: readonly string[]): Step | undefined {
  if (files.length === 0) return undefined
  return { ...step, command: `${step.command} ${files.map(quote).join(' ')}` }
}

function testsOf(step: Step, { everything, tests }: Selection): Step | undefined {
  if (everything !== undefined) return step
  return onFiles(step, tests)
}

const quote = (path: string) => `'${path.replaceAll("'", `'\\''`)}'`

function report(changed: readonly string[], { everything, tests, proofs }: Selection): void {
  console.log(`${changed.length} files changed.`)
  if (everything !== undefined) console.log(`All tests: ${everything}.`)
  else console.log(`${tests.length} test files reached.`)
  for (const folder of foldersOf(tests)) console.log(`  ${folder}`)
  if (proofs.length > 0) console.log(`Proofs reached: pnpm proofs ${proofs.join(' ')}\n`)
}

/** `packages/cli 12 files`, for people who wonder what takes the time. */
function foldersOf(tests: readonly string[]): readonly string[] {
  const byFolder = Map.groupBy(tests, (path) => path.slice(0, path.indexOf('/test/')))
  return [...byFolder].map(([folder, files]) => `${folder}: ${files.length}`)
}
