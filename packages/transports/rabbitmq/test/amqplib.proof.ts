import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { type PackedPackages, packPackages, runInstalled, urlsOf } from '@redrive/dev-support'
import { afterAll, beforeAll, expect, it } from 'vitest'
import manifest from '../package.json' with { type: 'json' }

/** The oldest version of each part of the peer range, and newer versions that most programs have. */
const VERSIONS = ['0.10.6', '0.10.9', '1.0.3', '1.2.0', '2.0.0', '2.3.1']
/** Since 1.1, amqplib contains its types. */
const HAS_TYPES = /^(?:1\.[1-9]|[2-9])/

const PRINTED = `dead letter: business, CardDeclined: the card of order 3 was declined
types: {"tenant":"int64"}
replay-1: handled
order 1, attempt 1, cycle 1
order 2, attempt 2, cycle 1
order 3, attempt 1, cycle 2
`

const [url = ''] = await urlsOf('rabbitmq', 'amqp')
let packed: PackedPackages

beforeAll(() => {
  packed = packPackages(['packages/core', 'packages/runtime', 'packages/transports/rabbitmq'])
})
afterAll(() => packed.remove())

it.each(VERSIONS)(
  'a service compiles and runs from the packed packages with amqplib %s',
  (version) => {
    const types = HAS_TYPES.test(version) ? [] : ['@types/amqplib@0.10']
    const result = runInstalled({
      file: join(import.meta.dirname, 'amqplib-service.ts'),
      args: [url, `amqplib-${randomUUID()}`],
      packages: [...packed.tarballs, `amqplib@${version}`, ...types],
    })
    expect(result).toEqual({ warnings: [], unwanted: [], printed: PRINTED })
  },
)

it('the oldest version of each part of the peer range is tested', () => {
  const oldest = manifest.peerDependencies.amqplib.split(' || ').map((range) => range.slice(1))
  expect(VERSIONS).toEqual(expect.arrayContaining(oldest))
})
