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
    const keys = ['expiry', 'index', 'entries', 'facts', 'totals']
    const names = keys.map((key) => `{${this.prefix}}:${key}`)
    const reply = await command('EVAL', READ_ALL, String(names.length), ...names)
    const [expiring = [], places = [], entries = [], known = [], values = [], totals = []] =
      reply as string[][]
    const ids = expiring.toSorted()
    assert.deepEqual(places.map((place) => place.slice(17)).toSorted(), ids, 'index')
    assert.deepEqual(entries.toSorted(), ids, 'entries')
    assert.deepEqual(known.toSorted(), ids, 'facts')
    const facts = values.map((text) => JSON.parse(text) as Facts)
    assert.deepEqual(new Map(pairs(totals)), totalsOf(facts), 'totals')
  }

  async close(): Promise<void> {
    const keys = await this.keys()
    const { command } = await this.client()
    if (keys.length > 0) await command('DEL', ...keys)
    for (const { kill } of [...this.#clients.values(), ...this.#own]) killOnce(kill)
  }
}

/** Reads everything in one request: between two, a client that reconnects sends its unanswered commands again. */
const READ_ALL = `return {
  redis.call('ZRANGE', KEYS[1], 0, -1), redis.call('ZRANGE', KEYS[2], 0, -1),
  redis.call('HKEYS', KEYS[3]), redis.call('HKEYS', KEYS[4]), redis.call('HVALS', KEYS[4]),
  redis.call('HGETALL', KEYS[5]) }`

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

/** Returns the pairs of a list of names and values. */
function pairs(list: readonly string[]): [string, number][] {
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
