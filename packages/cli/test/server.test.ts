import { randomUUID } from 'node:crypto'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  dropDatabase,
  emptyDatabase,
  freePort,
  ignoreConnectionErrors,
  urlOf,
} from '@redrive/dev-support'
import { rabbitmq, replayedQueue, topologyOf } from '@redrive/rabbitmq'
import { type Consumer, consume } from '@redrive/runtime'
import { until } from '@redrive/testing'
import { type ChannelModel, connect } from 'amqplib'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ended, start } from './child.ts'
import { run } from './world.ts'

/** An editor that changes one number. */
const edit = (path: string) => {
  writeFileSync(path, readFileSync(path, 'utf8').replace('99', '100'))
  return 0
}

/** All steps on a real server, in the order of an engineer on call. */
describe('with a server', () => {
  const name = `redrive_cli_${randomUUID().slice(0, 8)}`
  const queue = `cli-${randomUUID()}`
  const folder = mkdtempSync(join(tmpdir(), 'redrive-cli-'))
  const env: Record<string, string> = { REDRIVE_CONFIG: join(folder, 'redrive.config.json') }
  const ends: (() => Promise<unknown>)[] = []
  let isBroken = true
  let channelOf: ChannelModel
  let databaseUrl: string

  const redrive = (...args: readonly string[]) => run(args, { env, edit, isRealTime: true })
  const json = async <T>(...args: readonly string[]): Promise<T> => {
    const { stdout, stderr, code } = await redrive(...args, '--json')
    if (stdout === '') throw new Error(`exit ${code}: ${stderr}`)
    return JSON.parse(stdout) as T
  }
  interface Groups {
    readonly groups: readonly { readonly id: string; readonly openCount: number }[]
  }
  const openCount = async () => (await json<Groups>('groups', 'list')).groups[0]?.openCount ?? 0

  beforeAll(async () => {
    const amqp = await urlOf('rabbitmq')
    databaseUrl = await emptyDatabase(name)
    ends.push(() => dropDatabase(databaseUrl))
    const port = await freePort()
    writeFileSync(
      join(folder, 'redrive.config.json'),
      JSON.stringify({
        database: { url: databaseUrl },
        listen: `127.0.0.1:${port}`,
        auth: { development: { name: 'dev' } },
        approval: 'anyone',
        sources: { orders: { rabbitmq: { url: amqp, queue } } },
        shutdown: { readinessDelay: '0ms' },
        // A test that polls sends more requests than any person.
        limits: { requestsPerMinute: 100_000 },
      }),
    )
    env['REDRIVE_URL'] = `http://127.0.0.1:${port}`
    channelOf = await connect(amqp)
    ends.push(async () => {
      const channel = await channelOf.createChannel()
      const { exchange, source, deadLetters, later } = topologyOf(queue, 'quorum')
      for (const one of [source, deadLetters, ...later]) await channel.deleteQueue(one.name)
      await channel.deleteQueue(replayedQueue(queue))
      await channel.deleteExchange(exchange)
      await channelOf.close()
    })
    const consumer: Consumer = await consume(
      rabbitmq({ url: amqp, queue }),
      async ({ body }) => {
        if (!isBroken) return
        const message = `customer ${(body as { id: number }).id} is unknown`
        // A status that is no sign of an outage. During an outage no message would become a dead letter.
        throw Object.assign(new Error(message), { status: 422 })
      },
      { retry: { attempts: 1 } },
    )
    ends.push(() => consumer.stop())
    const channel = await channelOf.createConfirmChannel()
    for (let id = 1; id <= 5; id += 1) {
      channel.sendToQueue(queue, Buffer.from(JSON.stringify({ id })), {
        messageId: `m-${id}`,
        contentType: 'application/json',
      })
    }
    await channel.waitForConfirms()
  }, 120_000)
  afterAll(async () => {
    for (const end of ends.reverse()) await end()
  })

  test('replays the dead letters of a failing consumer', async () => {
    expect(await redrive('migrate', '--dry-run')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Would apply') as string,
    })
    expect((await redrive('migrate')).code).toBe(0)
    const server = start(['serve', '--log-level', 'warn'], env)
    const serving = ended(server)
    ends.push(async () => {
      server.kill('SIGTERM')
      await serving
    })
    await until('the server answers', async () => (await redrive('whoami')).code === 0)
    await until('five dead letters', async () => (await openCount()) === 5)

    const table = await redrive('groups', 'list')
    expect(table.stdout).toMatch(/customer .* is unknown/)
    const [group] = (await json<Groups>('groups', 'list')).groups
    const short = group?.id.slice(0, 6) ?? ''
    expect((await redrive('groups', 'show', short)).stdout).toContain('Why these are one group')
    const { deadLetters } = await json<{ deadLetters: { id: string; messageId: string }[] }>(
      'messages',
      'list',
      `group:${short}`,
    )
    expect(deadLetters.map(({ messageId }) => messageId).sort()).toEqual([
      'm-1',
      'm-2',
      'm-3',
      'm-4',
      'm-5',
    ])
    const [first, second] = deadLetters.map(({ id }) => id) as [string, string]
    expect((await redrive('messages', 'show', first)).stdout).toContain('"id"')
    // A prefix of the id is enough.
    expect((await json<{ id: string }>('messages', 'show', first.slice(0, 30))).id).toBe(first)

    expect((await redrive('discard', '--id', second, '--yes')).code).toBe(0)
    expect((await redrive('discard', '--id', second, '--yes')).code).toBe(5)
    // A prefix also finds a message that is not open.
    expect((await redrive('restore', '--id', second.slice(0, 30))).code).toBe(0)
    expect((await redrive('groups', 'change', short, '--owner', 'dev')).code).toBe(0)
    expect((await redrive('groups', 'comment', short, 'fixed in 1.2.3')).code).toBe(0)

    const { id: run } = await json<{ id: string }>(
      'replay',
      'plan',
      `group:${short}`,
      '--rate',
      '50/s',
      '--canary',
      '1',
      '--note',
      'fixed',
    )
    expect((await redrive('replay', 'start', run)).code).toBe(2)
    isBroken = false
    const replayed = await redrive('replay', 'start', run, '--yes', '--wait', '--timeout', '60s')
    expect(replayed).toMatchObject({ code: 0, stdout: 'Done: 5 resolved\n' })
    expect((await redrive('replay', 'start', run, '--yes')).code).toBe(5)
    expect(await openCount()).toBe(0)
    expect(await redrive('replay', 'plan', `group:${short}`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('no dead letters') as string,
    })
    expect((await redrive('messages', 'show', '00000000-0000-7000-8000-000000000000')).code).toBe(3)

    const agent = start(['mcp'], env)
    const answered = ended(agent)
    agent.stdin.end(
      `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_dlq_events', arguments: { filter: 'status:resolved after:24h' } } })}\n`,
    )
    expect((await answered).stdout).toContain('m-5')

    const { entries } = await json<{ entries: { operation: string; outcome: string }[] }>(
      'audit',
      'list',
      '--operation',
      'approveReplay',
    )
    expect(entries.map(({ outcome }) => outcome).toSorted()).toContain('done')
    const verified = await redrive('audit', 'verify')
    // The server has no checkpoints.
    expect(verified).toMatchObject({
      code: 8,
      stdout: expect.stringContaining('Verified, unchanged') as string,
      stderr: expect.stringContaining('without checkpoints') as string,
    })
  }, 180_000)

  /** Adds one more dead letter and returns its id. Later messages succeed. */
  async function oneMore(number: number): Promise<string> {
    isBroken = true
    const channel = await channelOf.createConfirmChannel()
    channel.sendToQueue(queue, Buffer.from(JSON.stringify({ id: number })), {
      messageId: `m-${number}`,
      contentType: 'application/json',
    })
    await channel.waitForConfirms()
    await until('the message is a dead letter', async () => (await openCount()) === 1)
    isBroken = false
    const { deadLetters } = await json<{ deadLetters: { id: string }[] }>(
      'messages',
      'list',
      'status:open',
    )
    return deadLetters[0]?.id as string
  }

  test('continues frozen replays after a restore is acknowledged', async () => {
    const { id: run } = await json<{ id: string }>('replay', 'plan', '--id', await oneMore(50))
    const database = ignoreConnectionErrors(new pg.Pool({ connectionString: databaseUrl, max: 1 }))
    // A restored table has another identity than the one stored in it.
    await database.query(`update redrive_catalog.replay_epoch set identity = identity || '0'`)
    await database.end()
    const refused = await redrive('replay', 'start', run, '--yes')
    expect(refused.code).toBe(5)
    expect(refused.stderr).toContain('redrive replay acknowledge-restore')
    expect(refused.stderr).not.toContain('redrive approve')
    expect(await redrive('replay', 'acknowledge-restore', '--yes')).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('Acknowledged') as string,
    })
    const replayed = await redrive('replay', 'start', run, '--yes', '--wait', '--timeout', '60s')
    expect(replayed).toMatchObject({ code: 0, stdout: 'Done: 1 resolved\n' })
  }, 120_000)

  test('replays an edited message', async () => {
    const id = await oneMore(99)
    const planned = await redrive('edit', id, '--yes', '--json')
    expect(planned).toMatchObject({
      code: 0,
      stderr: expect.stringContaining('+ {"id":100}') as string,
    })
    const { id: run, isChanged } = JSON.parse(planned.stdout) as { id: string; isChanged: boolean }
    expect(isChanged).toBe(true)
    expect(await redrive('approve', run, '--yes')).toMatchObject({ code: 0 })
    expect(await redrive('replay', 'watch', run, '--wait', '--timeout', '60s')).toMatchObject({
      code: 0,
      stdout: 'Done: 1 resolved\n',
    })
  }, 120_000)

  test('limits a token to its permissions until it is revoked', async () => {
    const made = await json<{ secret: string; id: string }>(
      'token',
      'create',
      'ci',
      '--allow',
      'view',
      '--source',
      'orders',
    )
    expect(made.secret).toMatch(/^rdv_/)
    env['REDRIVE_TOKEN'] = made.secret
    expect((await redrive('groups', 'list')).code).toBe(0)
    expect((await redrive('audit', 'list')).code).toBe(4)
    delete env['REDRIVE_TOKEN']
    expect((await redrive('token', 'revoke', made.id.slice(0, 13), '--yes')).code).toBe(0)
    env['REDRIVE_TOKEN'] = made.secret
    expect((await redrive('groups', 'list')).code).toBe(4)
    delete env['REDRIVE_TOKEN']
  })
})
