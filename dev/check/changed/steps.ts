import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { PROOFS } from '../../proofs/table.ts'
import type { Step } from '../steps.ts'
import { ROOT } from '../workspace.ts'
import { changedFiles } from './files.ts'
import { readGraph } from './graph.ts'
import { type Selection, select, TOOL_SETTINGS } from './select.ts'

/** Returns the steps of `pnpm check --changed`, each limited to the change where its tool allows it. */
export function changedSteps(all: readonly Step[], base: string | undefined): readonly Step[] {
  const { changed, since } = changedFiles(base)
  const deleted = changed.filter((file) => !existsSync(join(ROOT, file)))
  const merge = PROOFS.filter(({ tier }) => tier === 'merge')
  const selection = select(changed, readGraph(ROOT, deleted), merge)
  report(changed, since, selection)
  return limitSteps(all, changed, selection)
}

export function limitSteps(
  all: readonly Step[],
  changed: readonly string[],
  selection: Selection,
): readonly Step[] {
  // A lockfile or a compiler setting can break any step.
  if (selection.everything !== undefined) return all
  const existing = changed.filter((file) => existsSync(join(ROOT, file)))
  const isCodeChanged = changed.some((file) => CODE.test(file))
  const settings = changed.filter((file) => TOOL_SETTINGS.test(file))
  const limited: readonly (Step | undefined)[] = all.map((step) => {
    switch (step.name) {
      case 'format':
        if (settings.includes('biome.json')) return step
        // biome.json excludes some folders. Biome fails when it excludes all files of the command.
        return onFiles(
          { ...step, command: `${step.command} --no-errors-on-unmatched` },
          existing.filter((file) => FORMATTED.test(file)),
        )
      case 'lint':
        if (settings.includes('.oxlintrc.json')) return step
        return onFiles(
          step,
          existing.filter((file) => CODE.test(file)),
        )
      case 'unused':
        return settings.includes('knip.jsonc') ? step : undefined
      // Lint reads the declarations that this step writes.
      case 'types':
        return settings.includes('.oxlintrc.json') || isCodeChanged ? step : undefined
      case 'imports':
      case 'purity':
        return isCodeChanged ? step : undefined
      case 'notes':
        return changed.some((file) => file.startsWith('.changeset/')) ? step : undefined
      case 'reference':
        return changed.some((file) => REFERENCE.test(file)) ? step : undefined
      case 'tests':
        return onFiles({ ...step, command: `${step.command} ${WORKERS}` }, selection.tests)
      default:
        return undefined
    }
  })
  return limited.filter((step) => step !== undefined)
}

/**
 * The whole gate runs four processes. Here few files are selected, and most of them wait for a
 * broker. On two cores, after a change of one RabbitMQ file, four threads need 61 s; they start
 * faster than processes. Six threads need as long, because the processor is busy then, and tests
 * with short waits fail.
 */
const WORKERS = '--pool=threads --maxWorkers=4'

/** The files that the compiler, the linter and the check of imports read. */
const CODE = /\.tsx?$/

/** What biome formats. It does not format HTML with these settings, and biome.json excludes `.yaml`. */
const FORMATTED = /\.([cm]?[jt]sx?|jsonc?|css|yml)$/

/** The sources of the reference pages, and the pages that link to them. */
const REFERENCE = /^(packages\/.*|classification)\/src\/.*\.ts$|\.config\.schema\.json$|\.md$/

function onFiles(step: Step, files: readonly string[]): Step | undefined {
  if (files.length === 0) return undefined
  return { ...step, command: `${step.command} ${files.map(quote).join(' ')}` }
}

const quote = (path: string) => `'${path.replaceAll("'", `'\\''`)}'`

function report(
  changed: readonly string[],
  since: string,
  { everything, tests, proofs }: Selection,
): void {
  console.log(`${changed.length} files changed since ${since}.`)
  if (everything !== undefined) console.log(`All steps: ${everything}.`)
  else console.log(`${tests.length} test files reached.`)
  for (const folder of foldersOf(tests)) console.log(`  ${folder}`)
  if (proofs.length > 0) console.log(`Proofs reached: pnpm proofs ${proofs.join(' ')}\n`)
}

/** Returns texts such as `packages/cli 12 files`, which explain the duration. */
function foldersOf(tests: readonly string[]): readonly string[] {
  const byFolder = Map.groupBy(tests, (path) => path.slice(0, path.indexOf('/test/')))
  return [...byFolder].map(([folder, files]) => `${folder}: ${files.length}`)
}
