import { type ChildProcess, spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from '@redis/client'
import { freePort, urlOf } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { diagnose, exitCodeOf, findIn, gradeOf, REDIS_CHECKS, readRedis } from '../src/index.ts'
import { idsIn } from './ids.ts'

// Installs Redis, too. Other tests use this server, so its settings stay.
const shared = await urlOf('redis')
const folder = mkdtempSync(join(tmpdir(), 'redrive-doctor-redis-'))
const servers: ChildProcess[] = []
let url: string
let client: ReturnType<typeof createClient>

/** Starts a server for these tests alone, and returns its address. */
async function start(...settings: readonly string[]): Promise<string> {
  const port = String(await freePort())
  const args = ['--port', port, '--bind', '127.0.0.1', '--dir', folder, ...settings]
  servers.push(spawn('redis-server', args, { stdio: 'ignore' }))
  return `redis://127.0.0.1:${port}`
}

beforeAll(async () => {
  url = await start('--appendonly', 'yes', '--appendfsync', 'always', '--save', '')
  client = createClient({ url })
  client.on('error', () => undefined)
  await client.connect()
})
afterAll(async () => {
  client.destroy()
  for (const server of servers) {
    server.kill('SIGKILL')
    await once(server, 'exit')
  }
  rmSync(folder, { recursive: true })
})

const set = (name: string, value: string) => client.configSet(name, value)
const idsAt = async (address: string) => idsIn(REDIS_CHECKS, await readRedis({ url: address }))

/** Findings of every single server without a memory limit. */
const OF_ONE_SERVER = ['redis.no-memory-limit', 'redis.no-replica']

describe('the doctor of Redis', () => {
  it('reports a server that keeps nothing on disk, until it keeps everything', async () => {
    await set('appendonly', 'no')
    await set('appendfsync', 'everysec')
    expect(await idsAt(url)).toEqual(['redis.no-append-only-file', ...OF_ONE_SERVER].sort())
    await set('appendonly', 'yes')
    expect(await idsAt(url)).toEqual(['redis.append-fsync', ...OF_ONE_SERVER])
    await set('appendfsync', 'always')
    const facts = await readRedis({ url })
    expect(idsIn(REDIS_CHECKS, facts)).toEqual(OF_ONE_SERVER)
    expect(gradeOf(findIn(REDIS_CHECKS, facts)).grade).toBe('B')
  })

  it('reports a limit at which keys are deleted, and a limit that is nearly reached', async () => {
    await set('maxmemory', '100mb')
    expect(await idsAt(url)).toEqual(['redis.no-replica'])
    for (const policy of ['allkeys-lru', 'volatile-ttl']) {
      await set('maxmemory-policy', policy)
      expect(await idsAt(url)).toEqual(['redis.eviction', 'redis.no-replica'])
    }
    await set('maxmemory-policy', 'noeviction')
    await set('maxmemory', '1mb')
    expect(await idsAt(url)).toEqual(['redis.memory-full', 'redis.no-replica'])
    await set('maxmemory', '0')
  })

  it('reports replicas, and the address of a replica', async () => {
    const { port } = new URL(url)
    const replica = await start('--replicaof', '127.0.0.1', port, '--dbfilename', 'replica.rdb')
    await until('the replica is connected', async () => (await readRedis({ url })).replicas === 1)
    expect(await idsAt(url)).toContain('redis.asynchronous-replicas')
    expect(await idsAt(url)).not.toContain('redis.no-replica')
    const ids = await idsAt(replica)
    expect(ids).toContain('redis.replica')
    expect(ids).not.toContain('redis.no-replica')
  })

  it('names the rights that its user needs', async () => {
    const user = `doctor-${randomUUID()}`
    const own = createClient({ url: shared })
    await own.connect()
    const as = shared.replace('//', `//${user}:hidden@`)
    await own.aclSetUser(user, ['on', '>hidden', '-@all', '+info'])
    const [config] = findIn(REDIS_CHECKS, await readRedis({ url: as }))
    expect(config).toMatchObject({ check: 'redis.unreadable', subject: 'appendfsync' })
    expect(config?.fix).toContain('+info +config|get')
    await own.aclSetUser(user, ['-info'])
    const nothing = await readRedis({ url: as })
    expect(findIn(REDIS_CHECKS, nothing)).toMatchObject([{ subject: 'INFO', caps: 'C' }])
    // The rights that the fix names are enough.
    await own.aclSetUser(user, ['+info', '+config|get'])
    expect(await idsAt(as)).toEqual(await idsAt(shared))
    await own.aclDelUser(user)
    own.destroy()
  })

  it('reports a server that it cannot reach, without its password', async () => {
    const address = 'redis://app:hidden@127.0.0.1:1'
    const report = await diagnose({ redis: { url: address, timeoutMs: 2_000 } })
    expect(report.brokers[0]?.findings).toMatchObject([
      { check: 'redis.unreadable', subject: 'server' },
    ])
    expect(exitCodeOf(report)).toBe(1)
    expect(JSON.stringify(report)).not.toContain('hidden')
  })
})
