import { join } from 'node:path'
import { type PackedPackages, packPackages, runInstalled } from '@redrive/dev-support'
import { afterAll, beforeAll, expect, it } from 'vitest'

let packed: PackedPackages

beforeAll(() => {
  const folders = ['core', 'runtime', 'transports/memory', 'fastify']
  packed = packPackages(folders.map((one) => `packages/${one}`))
}, 600_000)
afterAll(() => packed.remove())

it.each(['5.0.0', '5'])(
  'runs in an empty folder with Fastify %s',
  (version) => {
    const { printed, warnings } = runInstalled({
      file: join(import.meta.dirname, 'installed-service.ts'),
      args: [],
      packages: [...packed.tarballs, `fastify@${version}`],
    })
    expect(printed).toBe(
      '{"status":"up","consumers":{"orders":{"status":"up","reasons":[]}}}\ndown\n',
    )
    expect(warnings).toEqual([])
  },
  300_000,
)
