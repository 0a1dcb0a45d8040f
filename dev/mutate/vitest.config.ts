import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type Reporter, type TestSpecification, type Vitest } from 'vitest/node'
import base from '../../vitest.config.ts'

/** Stryker runs this in a copy of the tree, which is then the working directory. */
const FAST_CHECK = join(process.cwd(), 'dev/mutate/fast-check.ts')

/** How often a test file noticed a mutant, by mutated file. */
const noticed = new Map<string, Map<string, number>>()

/** Stryker sets the mutated file as the one whose tests are chosen. */
const mutatedFile = ({ config }: Vitest): string => config.related?.[0] ?? ''

/**
 * Runs the tests first that noticed most mutants of the same file, then the fastest: the first failure kills a mutant,
 * and a mutant of code that runs when a module is loaded has every test.
 */
class BestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const kills = noticed.get(mutatedFile(this.ctx))
    const killsOf = ({ moduleId }: TestSpecification) => kills?.get(moduleId) ?? 0
    return files.toSorted(
      (a, b) =>
        killsOf(b) - killsOf(a) || cost(a) - cost(b) || a.moduleId.localeCompare(b.moduleId),
    )
  }
}

function cost({ moduleId }: TestSpecification): number {
  if (moduleId.includes('.prop.')) return 2
  return /(hash|signature|foreign|classify-properties)\.test/.test(moduleId) ? 1 : 0
}

let vitest: Vitest | undefined

/** Remembers which test files failed. */
const REPORTER: Reporter = {
  onInit(started) {
    vitest = started
  },
  onTestRunEnd(modules) {
    if (vitest === undefined) return
    const file = mutatedFile(vitest)
    const kills = noticed.get(file) ?? new Map<string, number>()
    for (const module of modules)
      if (!module.ok()) kills.set(module.moduleId, (kills.get(module.moduleId) ?? 0) + 1)
    noticed.set(file, kills)
  },
}

export default defineConfig({
  ...base,
  plugins: [
    {
      name: 'short-properties',
      enforce: 'pre',
      resolveId: (id, importer) =>
        id === 'fast-check' && importer !== FAST_CHECK ? FAST_CHECK : undefined,
    },
  ],
  test: {
    include: ['packages/core/test/**/*.test.ts'],
    exclude: ['**/hiding-speed.test.ts'],
    isolate: false,
    sequence: { sequencer: BestFirst },
    reporters: [REPORTER],
    // Code with coverage counters is many times slower in tight loops.
    testTimeout: 60_000,
  },
})
