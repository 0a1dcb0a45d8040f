import { defineConfig } from 'vitest/config'

// Tests run on the sources of every package, so they need no build.
const conditions = ['@redrive/source', 'module', 'node', 'development|production']

/** Tests too heavy for the gate end in `.proof.ts`; CI asks for them by name. */
const kinds = process.env['REDRIVE_PROOFS'] === undefined ? 'test' : '{test,proof}'

const CONTROL_PLANE = `packages/{api,catalog,cli,doctor,server,storm}/test/**/*.${kinds}.ts`

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // Properties and statistics take seconds on a busy machine; a hanging test still ends.
    testTimeout: 30_000,
    // A hook may be the first to ask for a service, which starts then.
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
    // The contract of a transport restarts its broker, so whoever else needs one goes first.
    projects: [
      {
        extends: true,
        test: { name: 'control plane', include: [CONTROL_PLANE], sequence: { groupOrder: 0 } },
      },
      {
        extends: true,
        test: {
          name: 'runtime',
          include: [
            `packages/**/test/**/*.${kinds}.ts`,
            '{simulation,bench,faults,dev}/test/**/*.test.ts',
          ],
          exclude: [CONTROL_PLANE, '**/node_modules/**'],
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
