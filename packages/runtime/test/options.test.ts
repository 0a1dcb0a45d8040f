import { isRedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { consume, Dependency, dependency, relay } from '../src/index.ts'
import { PLAIN, scripted, unreachable, world } from './fixtures.ts'

/** Returns the problems of the rejected call. */
async function problemsOf(call: () => unknown): Promise<readonly string[]> {
  try {
    await call()
  } catch (error) {
    if (isRedriveError(error, 'POLICY_INVALID')) return error.problems
    throw error
  }
  return []
}

const handler = () => undefined

const KNOWN =
  'adaptiveConcurrency, breaker, classify, clock, concurrency, deadLetter, decode, dependency, flood, grace, inbox, logger, name, onBreakerOpen, order, outage, poison, random, retry, retryBudget, schema, signature, timeout'

const STANDARD = { '~standard': { validate: (value: unknown) => ({ value }) } }

describe('consume', () => {
  it('reports all mistakes in one error', async () => {
    const options = {
      schema: { type: 'object' },
      decode: 'json',
      dependency: '',
      inbox: {},
      name: '',
      logger: 'on',
      clock: Date,
      random: 0.5,
      timeout: 'soon',
      concurency: 5,
    }
    await expect(consume(undefined as never, undefined as never, options as never)).rejects.toThrow(
      expect.objectContaining({
        code: 'POLICY_INVALID',
        message: [
          'The options of consume() are invalid:',
          "transport: expected a transport such as rabbitmq({ url: 'amqp://localhost', queue: 'orders' }), got undefined",
          'handler: expected a function, got undefined',
          'inbox: expected an inbox such as postgresInbox({ pool }), got an object',
          "timeout: expected a duration from 1ms to 12h such as '250ms', '5s' or '2m', got 'soon'",
          'schema: expected a Standard Schema, such as one of zod, valibot or arktype, got an object',
          "decode: expected a function, got 'json'",
          "dependency: expected a name such as 'payments-api', or the result of dependency(), got ''",
          "name: expected the name of the consumer, got ''",
          "logger: expected 'off', or a logger with warn() and error() such as console or pino, got 'on'",
          'clock: expected a clock with now() and after(), got a function',
          'random: expected a function, got 0.5',
          `concurency: unknown option; known options: ${KNOWN}`,
        ].join('\n- '),
      }),
    )
  })

  it.each([0, -1, 2.5, 'x', Number.NaN])(
    'rejects %s as the limit of an inbox, together with names without a visible character',
    async (maxConcurrency) => {
      const options = {
        inbox: { handle: () => Promise.resolve('handled'), maxConcurrency },
        dependency: ' ',
        name: '\t',
      }
      const shown = typeof maxConcurrency === 'string' ? `'x'` : String(maxConcurrency)
      await expect(consume(world().transport(), handler, options as never)).rejects.toMatchObject({
        problems: [
          `inbox.maxConcurrency: expected a whole number of at least 1, got ${shown}`,
          "dependency: expected a name such as 'payments-api', or the result of dependency(), got ' '",
          "name: expected the name of the consumer, got '\t'",
        ],
      })
    },
  )

  it('accepts an inbox with an unlimited concurrency', async () => {
    const inbox = {
      handle: () => Promise.resolve('handled' as const),
      maxConcurrency: Number.POSITIVE_INFINITY,
    }
    const consumer = await consume(world().transport(), handler, { inbox, logger: 'off' })
    expect(consumer.policy.concurrency).toBe(50)
    await consumer.stop()
  })

  it('rejects options that are not an object', async () => {
    const { transport } = world()
    const call = (options: unknown) => () => consume(transport(), handler, options as never)
    expect(await problemsOf(call(null))).toEqual(['options: expected an object, got null'])
    expect(await problemsOf(call('10s'))).toEqual(["options: expected an object, got '10s'"])
  })

  it('rejects a transport without the name of its source', async () => {
    const { transport } = scripted()
    const call = () => consume(Object.assign(transport, { source: '' }), handler)
    expect(await problemsOf(call)).toEqual([
      "transport: expected a transport with the name of its source, got ''",
    ])
  })

  it('starts nothing when an option is invalid', async () => {
    const { transport } = scripted()
    await problemsOf(() => consume(transport, handler, { name: '' }))
    expect(transport.log).toEqual([])
    await (await consume(transport, handler)).stop()
  })

  it.each([
    ['a function, as of arktype', Object.assign(() => undefined, STANDARD)],
    ['an object', STANDARD],
  ])('accepts a schema that is %s', async (_, schema) => {
    const { transport } = world()
    const options = { ...PLAIN, schema: schema as never }
    expect(await problemsOf(() => consume(transport(), handler, options))).toEqual([])
  })

  it.each([
    ['text', 'schema'],
    ['null', null],
    ['an empty mark', { '~standard': {} }],
  ])('rejects a schema that is %s', async (_, schema) => {
    const { transport } = world()
    const [problem] = await problemsOf(() =>
      consume(transport(), handler, { schema: schema as never }),
    )
    expect(problem).toMatch(/^schema: expected a Standard Schema/)
  })
})

describe('one transport in two consumers', () => {
  const IN_USE =
    'transport: the transport of "orders" is already used by another consumer; create one transport for each consumer'
  const CLOSED =
    'transport: the transport of "orders" was closed when its consumer stopped or did not start, and cannot be opened again; create a new transport'

  it('is rejected, also while the first one starts', async () => {
    const transport = world().transport()
    const starting = consume(transport, handler)
    expect(await problemsOf(() => consume(transport, handler))).toEqual([IN_USE])
    const consumer = await starting
    expect(await problemsOf(() => consume(transport, handler))).toEqual([IN_USE])
    await consumer.stop()
  })

  it('is rejected after the first one stopped or failed to start', async () => {
    const transport = world().transport()
    await (await consume(transport, handler)).stop()
    expect(await problemsOf(() => consume(transport, handler))).toEqual([CLOSED])
    const { transport: failing } = scripted()
    failing.open = () => Promise.reject(unreachable())
    await expect(consume(failing, handler)).rejects.toThrow('ECONNREFUSED')
    expect(await problemsOf(() => consume(failing, handler))).toEqual([CLOSED])
  })
})

describe('a dependency', () => {
  it.each([[''], [' '], [undefined], [7]])('needs a name, and %j is none', async (name) => {
    const shown = typeof name === 'string' ? `'${name}'` : String(name)
    const problems = [`name: expected a name such as 'payments-api', got ${shown}`]
    expect(await problemsOf(() => dependency(name as never))).toEqual(problems)
    expect(await problemsOf(() => new Dependency(name as never))).toEqual(problems)
  })
})

describe('relay', () => {
  it('rejects a value that is not a sink', async () => {
    expect(await problemsOf(() => relay(undefined as never))).toEqual([
      "sink: expected a sink such as loki({ url: 'http://loki:3100' }), got undefined",
    ])
  })
})
