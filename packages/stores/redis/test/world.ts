import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { createClient } from '@redis/client'
import type { DeadLetterStore } from '@redrive/runtime'
import type { StoreFixture } from '@redrive/testing'
import { Redis } from 'ioredis'
import { type RedisClient, type RedisStoreOptions, redisStore } from '../src/index.ts'

/** A client of either library, with the functions that tests need. */
export interface TestClient {
  readonly client: RedisClient & { info(section: string): Promise<string> }
  readonly command: (...args: readonly string[]) => Promise<unknown>
  /** Ends it like a crash of the process: no disconnect, and no further data. */
  readonly kill: () => void
}

export type Connect = (url: string) => Promise<TestClient>

/** The command that failed reports why a connection was lost. */
const ignore = (): void => undefined

export const nodeRedis: Connect = async (url) => {
  const client = createClient({ url })
  client.on('error', ignore)
  await client.connect()
  return {
    client,
    command: (...args) => client.sendCommand([...args]),
    kill: () => client.destroy(),
  }
}

export const ioredis: Connect = async (url) => {
  const client = new Redis(url, { lazyConnect: true })
  client.on('error', ignore)
  await client.connect()
  return {
    client,
    command: (name = '', ...args) => client.call(name, ...args),
    kill: () => client.disconnect(),
  }
}

export const CLIENTS: readonly (readonly [name: string, connect: Connect])[] = [
  ['@redis/client', nodeRedis],
  ['ioredis', ioredis],
]

/** A separate prefix on a server, with one client per store. */
export class RedisWorld implements StoreFixture {
  readonly prefix = `test-${randomUUID()}`
  readonly #url: string
  readonly #connect: Connect
  readonly #options: Partial<RedisStoreOptions>
  readonly #clients = new Map<DeadLetterStore, TestClient>()
  readonly #own: TestClient[] = []

  constructor(url: string, connect: Connect, options: Partial<RedisStoreOptions> = {}) {
    this.#url = url
    this.#connect = connect
    this.#options = options
  }

  async store(options: Partial<RedisStoreOptions> = {}): Promise<DeadLetterStore> {
    const connected = await this.#connect(this.#url)
    const store = redisStore({
      client: connected.client,
      prefix: this.prefix,
      retention: '1h',
      lease: '1s',
      // All tests run at the same time, on a machine that may be busy.
      timeout: '30s',
      ...this.#options,
      ...options,
    })
    this.#clients.set(store, connected)
    return store
  }

  crash(store: DeadLetterStore): void {
    this.#clients.get(store)?.kill()
  }

  /** Returns a client besides those of the stores. */
  async client(): Promise<TestClient> {
    const connected = await this.#connect(this.#url)
    this.#own.push(connected)
    return connected
  }

  async keys(): Promise<readonly string[]> {
    const { command } = await this.client()
    return (await command('KEYS', `{${this.prefix}}:*`)) as string[]
  }

  /** Asserts that the data on the server is consistent: no partial dead letter, no wrong count. */
  async expectWhole(): Promise<void> {
    const { command } = await this.client()
    const query = async (name: string, key: string, ...args: string[]) =>
      (await command(name, `{${this.prefix}}:${key}`, ...args)) as string[]
    const ids = (await query('ZRANGE', 'expiry', '0', '-1')).toSorted()
    const places = await query('ZRANGE', 'index', '0', '-1')
    assert.deepEqual(places.map((place) => place.slice(17)).toSorted(), ids, 'index')
    assert.deepEqual((await query('HKEYS', 'entries')).toSorted(), ids, 'entries')
    assert.deepEqual((await query('HKEYS', 'facts')).toSorted(), ids, 'facts')
    const facts = (await query('HVALS', 'facts')).map((text) => JSON.parse(text) as Facts)
    assert.deepEqual(new Map(pairs(await query('HGETALL', 'totals'))), totalsOf(facts), 'totals')
  }

  async close(): Promise<void> {
    const keys = await this.keys()
    const { command } = await this.client()
    if (keys.length > 0) await command('DEL', ...keys)
    for (const { kill } of [...this.#clients.values(), ...this.#own]) killOnce(kill)
  }
}

interface Facts {
  readonly sink: string
  readonly class: string
  readonly bytes: number
}

function totalsOf(facts: readonly Facts[]): ReadonlyMap<string, number> {
  const totals = new Map<string, number>()
  const add = (name: string, by: number) => totals.set(name, (totals.get(name) ?? 0) + by)
  for (const one of facts) {
    add('count', 1)
    add('bytes', one.bytes)
    add(`class:${one.class}`, 1)
    add(`sink:${one.sink}`, 1)
  }
  return totals
}

/** Converts a list or an object: the two clients return different forms. */
function pairs(reply: readonly string[] | Readonly<Record<string, string>>): [string, number][] {
  if (!Array.isArray(reply)) {
    return Object.entries(reply).map(([name, value]) => [name, Number(value)])
  }
  const list = reply as readonly string[]
  return Array.from({ length: list.length / 2 }, (_, i) => [
    list[2 * i] ?? '',
    Number(list[2 * i + 1]),
  ])
}

/** Ends it once. A crash may have ended it already, and `destroy` then throws. */
function killOnce(kill: () => void): void {
  try {
    kill()
  } catch (error) {
    if (!(error instanceof Error && error.constructor.name === 'ClientClosedError')) throw error
  }
}
