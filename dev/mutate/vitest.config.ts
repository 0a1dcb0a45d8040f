import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import base from '../../vitest.config.ts'

/** Stryker runs this in a copy of the tree, which is then the working directory. */
const FAST_CHECK = join(process.cwd(), 'dev/mutate/fast-check.ts')

/** Runs the fastest tests first, because the first failure kills a mutant. */
class QuickFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => cost(a) - cost(b) || a.moduleId.localeCompare(b.moduleId))
  }
}

function cost({ moduleId }: TestSpecification): number {
  if (moduleId.includes('.prop.')) return 2
  return /(hash|signature|classify-properties)\.test/.test(moduleId) ? 1 : 0
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
    isolate: false,
    sequence: { sequencer: QuickFirst },
    // Code with coverage counters is many times slower in tight loops.
    testTimeout: 60_000,
  },
})
