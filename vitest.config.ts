import { defineConfig } from 'vitest/config'

// Tests run on the sources of every package, so they need no build.
const conditions = ['@redrive/source', 'module', 'node', 'development|production']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // Properties and statistics take seconds on a busy machine; a hanging test still ends.
    testTimeout: 30_000,
    include: ['{packages/**,simulation,bench,dev}/test/**/*.test.ts'],
  },
})
