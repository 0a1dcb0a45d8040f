import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { LongestFirst } from './dev/check/longest-first.ts'

// Tests run on the sources of every package, so they need no build. The condition `module` is missing, as in Node: the
// client of SQS has files for bundlers that Node cannot load.
const conditions = ['@redrive/source', 'node', 'development|production']

/** Tests too heavy for the gate end in `.proof.ts`; dev/proofs/table.ts names them. */
const kinds = process.env['REDRIVE_PROOFS'] === undefined ? 'test' : '{test,proof}'

const BROKERS = `packages/transports/!(memory)/test/**/*.${kinds}.ts`
const INTEGRATION = [
  `packages/{catalog,cli,doctor,postgres-internal,server}/test/**/*.${kinds}.ts`,
  `packages/stores/{postgres,redis}/test/**/*.${kinds}.ts`,
  'packages/{fastify,nestjs}/test/rabbitmq.test.ts',
  'bench/test/**/*.test.ts',
]
/** Tests in a real browser. */
const BROWSER = `packages/console/test/browser/**/*.${kinds}.ts`
/**
 * Tests of code without state of the process. Their files share a process each worker, which halves their cost:
 * most of it was the start and the imports of a process for each file. Consumers, emitters and metrics
 * register themselves for the whole process, so tests that start them stay apart.
 */
const STATELESS = [
  `packages/{api,console,core}/test/**/*.${kinds}.ts`,
  '{faults,dev}/test/**/*.test.ts',
]
const NOT_TESTS = '**/node_modules/**'

/** The settings of every project. */
const shared = {
  // Programs that tests start run from TypeScript. With a compile cache, each starts in two
  // thirds of the time.
  env: { NODE_COMPILE_CACHE: join(import.meta.dirname, 'node_modules/.cache/redrive') },
  // Much longer than a healthy test: a machine that gives little time to its processes must not fail
  // tests. A hanging test still ends.
  testTimeout: 90_000,
  // Concurrent tests of a file mostly wait for a broker. Twice vitest's number ends the longest files
  // in half the time.
  maxConcurrency: 10,
  // A hook may be the first user of a service, which starts then.
  hookTimeout: 120_000,
  expect: { poll: { timeout: 45_000 } },
}

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // Four on two cores: most tests wait for a broker. The contract of the outbox uses 10 s of processor time in 45 s.
    maxWorkers: 4,
    ...shared,
    sequence: { sequencer: LongestFirst },
    // All projects run together. dev/check/longest-first.ts starts the longest files first, and the tests
    // without a server at the end.
    projects: [
      {
        extends: true,
        test: {
          name: 'brokers',
          include: [BROKERS],
        },
      },
      {
        extends: true,
        test: { name: 'integration', include: INTEGRATION },
      },
      {
        extends: true,
        test: {
          name: 'browser',
          include: [BROWSER],
          globalSetup: 'packages/console/test/browser/build.ts',
        },
      },
      {
        extends: true,
        test: { name: 'clients', include: ['classification/test/**/*.test.ts'] },
      },
      {
        extends: true,
        test: {
          // No server: the tests of both pure projects also run on the oldest supported Node before each merge.
          name: 'pure',
          isolate: false,
          include: STATELESS,
          exclude: [BROWSER, NOT_TESTS],
        },
      },
      {
        extends: true,
        test: {
          name: 'pure-isolated',
          include: [`packages/**/test/**/*.${kinds}.ts`, 'simulation/test/**/*.test.ts'],
          exclude: [...STATELESS, BROKERS, ...INTEGRATION, BROWSER, NOT_TESTS],
        },
      },
    ],
  },
})
