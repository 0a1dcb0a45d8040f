import { defineConfig } from 'vitest/config'

// Tests run on the sources of every package, so they need no build.
const conditions = ['@redrive/source', 'module', 'node', 'development|production']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // Properties and statistics take seconds on a busy machine; a hanging test still ends.
    testTimeout: 30_000,
    include: [
      '{packages/**,simulation,bench,faults,dev}/test/**/*.test.ts',
      // Tests too heavy for the gate; CI asks for them by name.
      ...(process.env['REDRIVE_PROOFS'] === undefined ? [] : ['packages/**/test/**/*.proof.ts']),
    ],
  },
})
