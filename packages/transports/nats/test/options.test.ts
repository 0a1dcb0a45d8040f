import { describe, expect, it } from 'vitest'
import { connectionOptions, nats, natsSink, natsSource } from '../src/index.ts'

const NAME = 'expected a name without spaces, dots, asterisks, slashes and ">"'
const SERVERS =
  "servers: expected an address such as 'nats://localhost:4222', or several for a cluster"

const invalid = (call: string, ...problems: readonly string[]): unknown =>
  expect.objectContaining({
    code: 'POLICY_INVALID',
    message: [`The options of ${call} are invalid:`, ...problems].join('\n- '),
  })

describe('the options of NATS', () => {
  it('are reported together', () => {
    const options = {
      stream: 'orders.eu',
      consumer: '',
      replicas: 6,
      topology: 'adopt',
      lease: '10ms',
      subjects: [],
      servers: [''],
      queue: 'orders',
    }
    expect(() => nats(options as never)).toThrow(
      invalid(
        'nats()',
        `stream: ${NAME}, got 'orders.eu'`,
        `consumer: ${NAME}, got ''`,
        `${SERVERS}, got an array; probably the environment variable NATS_URL is not set`,
        "topology: expected 'declare' or 'verify', got 'adopt'",
        'replicas: expected a whole number from 1 to 5, got 6',
        "subjects: expected a list of subjects such as ['orders.>'], got an array",
        "lease: expected a duration from 1s to 1d such as '250ms', '5s' or '2m', got '10ms'",
        'queue: unknown option; known options: confirmTimeout, connect, consumer, filterSubjects, lease, prefix, replicas, servers, stream, subjects, topology',
      ),
    )
  })

  it('of a source can be those of the transport', () => {
    const options = { servers: 'nats://localhost', stream: 'orders', consumer: 'billing' }
    const all = { ...options, subjects: ['orders.>'], filterSubjects: ['orders.eu'], lease: 5_000 }
    expect(natsSource(all as never).source).toBe('orders')
    expect(nats(all).source).toBe('orders')
  })

  it('move credentials out of addresses, because the client library ignores them there', () => {
    expect(connectionOptions('nats://app:p%40ss:1@one:4222')).toMatchObject({
      servers: ['one:4222'],
      user: 'app',
      pass: 'p@ss:1',
    })
    expect(connectionOptions(['tls://to%2Fken@one:4222', 'two:4223'])).toMatchObject({
      servers: ['one:4222', 'two:4223'],
      token: 'to/ken',
      tls: {},
    })
    const plain = connectionOptions('localhost')
    expect(plain).toMatchObject({ servers: ['localhost'], maxReconnectAttempts: -1 })
    expect(Object.keys(plain)).not.toContain('tls')
  })

  it('do not print an address that is not valid, because it may contain a password', () => {
    expect(() => natsSink({ servers: 7 as never, subject: '' })).toThrow(
      invalid(
        'natsSink()',
        "subject: expected a subject, or a function that returns it, got ''",
        `${SERVERS}, got 7`,
      ),
    )
  })
})
