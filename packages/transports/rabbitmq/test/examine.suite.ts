import { randomUUID } from 'node:crypto'
import { isRedriveError } from '@redrive/core'
import { type Channel, connect, type Options } from 'amqplib'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  deadLetterExchange,
  deadLetterQueue,
  delayQueue,
  examine,
  rabbitmq,
  replayedQueue,
  topologyOf,
} from '../src/index.ts'
import type { Management } from './services.ts'

/** What `examine` finds on a live broker. One node: a B at best. */
export function examineSuite(amqp: string, { api, authorization }: Management): void {
  const management = managementUrl({ api, authorization })

  describe('examine', () => {
    let channel: Channel
    const made: string[] = []

    beforeAll(async () => {
      channel = await (await connect(amqp)).createChannel()
    })

    afterAll(async () => {
      for (const name of made) {
        await channel.deleteQueue(name)
        await channel.deleteExchange(name)
      }
      await channel.close()
    })

    const declare = async (name: string, args: object, options: Options.AssertQueue = {}) => {
      made.push(name)
      await channel.assertQueue(name, { durable: true, ...options, arguments: args })
    }

    /** All a source needs, as it should be, but for what the test changes. */
    async function source(changed: Readonly<Record<string, unknown>> = {}): Promise<string> {
      const queue = `examined-${randomUUID()}`
      const { exchange, source, deadLetters } = topologyOf(queue, 'quorum')
      await channel.assertExchange(exchange, 'direct')
      made.push(exchange)
      await declare(deadLetters.name, deadLetters.arguments)
      await channel.bindQueue(deadLetters.name, exchange, queue)
      await declare(queue, { ...source.arguments, ...changed })
      return queue
    }

    const problems = async (queue: string) => {
      const { findings, grade } = await examine({ management, queue })
      return { grade, problems: findings.map(({ where, problem }) => `${where}: ${problem}`) }
    }

    it('finds nothing but the missing nodes on what the transport declares', async () => {
      const queue = `examined-${randomUUID()}`
      const transport = rabbitmq({ url: amqp, queue })
      await transport.open()
      await transport.close()
      made.push(queue, deadLetterQueue(queue), deadLetterExchange(queue))
      const { version, grade, findings } = await examine({ management, queue })
      expect(version).toMatch(/^\d+\.\d+\.\d+/)
      expect(grade).toBe('B')
      expect(findings.map(({ where, problem }) => `${where}: ${problem}`)).toEqual([
        `queue ${queue}: it has 1 member`,
        `queue ${deadLetterQueue(queue)}: it has 1 member`,
      ])
    })

    it.each([
      [
        'dead-letters at most once',
        { 'x-dead-letter-strategy': 'at-most-once' },
        'C',
        /at most once/,
      ],
      [
        'has no dead-letter exchange',
        {
          'x-dead-letter-exchange': undefined,
          'x-dead-letter-strategy': undefined,
          'x-dead-letter-routing-key': undefined,
        },
        'C',
        /no dead-letter exchange/,
      ],
      [
        'overflows by dropping',
        { 'x-overflow': 'drop-head', 'x-max-length': 10 },
        'C',
        /oldest messages are dropped/,
      ],
      ['only seems to dead-letter safely', { 'x-overflow': undefined }, 'C', /not in force/],
      ['expires', { 'x-expires': 3_600_000 }, 'C', /expires when unused/],
      ['has a low delivery limit', { 'x-delivery-limit': 20 }, 'B', /after 20 deliveries/],
    ])('says when the source %s', async (_, changed, grade, expected) => {
      const limited = 'x-dead-letter-exchange' in changed ? { 'x-message-ttl': 60_000 } : {}
      const queue = await source({ ...changed, ...limited })
      const found = await problems(queue)
      expect(
        found.problems.some((line) => line.startsWith(`queue ${queue}:`) && expected.test(line)),
      ).toBe(true)
      expect(found.grade).toBe(grade)
    })

    it('reads policies as well as arguments, and arguments win', async () => {
      const queue = await source({ 'x-max-length': 10, 'x-overflow': 'drop-head' })
      const name = `examined-${randomUUID()}`
      const url = new URL(`/api/policies/%2f/${name}`, management)
      const definition = { overflow: 'reject-publish', expires: 3_600_000 }
      const body = JSON.stringify({ pattern: `^${queue}$`, definition, 'apply-to': 'queues' })
      const plain = new URL(url.pathname, url.origin)
      await fetch(plain, { method: 'PUT', headers: { authorization }, body })
      try {
        await expect
          .poll(async () => (await problems(queue)).problems, { timeout: 20_000 })
          .toEqual(
            expect.arrayContaining([
              `queue ${queue}: it expires when unused, with everything in it`,
              `queue ${queue}: when it is full the oldest messages are dropped`,
            ]),
          )
      } finally {
        await fetch(plain, { method: 'DELETE', headers: { authorization } })
      }
    })

    it('says when a classic queue, or one that does not survive, holds the messages', async () => {
      const queue = `examined-${randomUUID()}`
      await declare(queue, { 'x-queue-type': 'classic' }, { durable: false, autoDelete: true })
      const found = await problems(queue)
      expect(found.grade).toBe('C')
      for (const problem of [
        'it is gone after a restart of the broker',
        'it is deleted with its last consumer',
        'it lives on one node',
      ]) {
        expect(found.problems).toContain(`queue ${queue}: ${problem}`)
      }
      expect(found.problems).toContain(`queue ${deadLetterQueue(queue)}: it is missing`)
      expect(
        found.problems.some((line) =>
          line.startsWith(`exchange ${deadLetterExchange(queue)}: it is missing`),
        ),
      ).toBe(true)
    })

    it('says when a delay queue would bring messages back late, nowhere, or not at all', async () => {
      const queue = await source()
      const delay = delayQueue(queue, 1_000)
      await declare(delay, {
        'x-queue-type': 'quorum',
        'x-message-ttl': 2_000,
        'x-dead-letter-exchange': '',
        'x-dead-letter-routing-key': 'elsewhere',
      })
      const found = await problems(queue)
      expect(found.grade).toBe('C')
      for (const expected of [
        /dead-letters at most once/,
        /time to live is 2000 ms, not 1000 ms/,
        /does not lead back/,
      ]) {
        expect(
          found.problems.some((line) => line.startsWith(`queue ${delay}:`) && expected.test(line)),
        ).toBe(true)
      }
    })

    it('says when confirmations of replays are not kept', async () => {
      const queue = await source()
      const replayed = replayedQueue(queue)
      await declare(replayed, { 'x-queue-type': 'classic', 'x-expires': 3_600_000 })
      const found = await problems(queue)
      expect(found.grade).toBe('C')
      expect(found.problems).toContain(
        `queue ${replayed}: it expires when unused, with everything in it`,
      )
    })

    it('says what to do when the management API does not answer', async () => {
      const closed = 'http://guest:secret@127.0.0.1:9'
      const failure = await examine({ management: closed, queue: 'orders' }).catch(
        (error: unknown) => error,
      )
      expect(isRedriveError(failure, 'UNREACHABLE')).toBe(true)
      expect(String(failure)).toMatch(/rabbitmq_management/)
      expect(String(failure)).not.toContain('secret')
    })
  })
}

/** With the credentials in it, as a user gives it. */
function managementUrl({ api, authorization }: Management): string {
  const [username = '', password = ''] = Buffer.from(authorization.slice('Basic '.length), 'base64')
    .toString()
    .split(':')
  return Object.assign(new URL(api), { username, password, pathname: '' }).href
}
