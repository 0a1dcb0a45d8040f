import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type PackedPackages, packPackages, runInstalled, urlsOf } from '@redrive/dev-support'
import { afterAll, beforeAll, expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }

const VERSIONS = ['2.0.0', '2.2.4']

const PRINTED = `order 1, attempt 1
order 2, attempt 2
dead letters: 1
`

const [broker = ''] = await urlsOf('kafka')
let packed: PackedPackages

beforeAll(() => {
  packed = packPackages(['packages/core', 'packages/runtime', 'packages/transports/kafka'])
})
afterAll(() => packed.remove())

it.each(VERSIONS)(
  'a service compiles and runs from the packed packages with kafkajs %s and no other client',
  (version) => {
    const result = runInstalled({
      file: join(import.meta.dirname, 'kafkajs-service.ts'),
      args: [broker, `kafkajs-${randomUUID()}`],
      packages: [...packed.tarballs, `kafkajs@${version}`],
      without: ['@platformatic/kafka'],
    })
    expect(result).toEqual({ warnings: [], unwanted: [], printed: PRINTED })
  },
)

it('the oldest version of the peer range is tested', () => {
  expect(VERSIONS).toContain(manifest.peerDependencies.kafkajs.slice(1))
})
