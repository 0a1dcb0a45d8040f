import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fakeServer, type Handlers } from './fake-server.ts'
import { GROUP_A, MESSAGE_A, source } from './things.ts'
import { run, type WorldOptions } from './world.ts'

const rule = { name: 'acquirers', match: { text: 'acquirer * declined' }, group: 'Declined' }

async function runWith(handlers: Handlers, args: readonly string[], options: WorldOptions = {}) {
  const server = await fakeServer(handlers)
  onTestFinished(() => server.close())
  const result = await run(args, { ...options, env: { ...server.env, ...options.env } })
  return { ...result, requests: server.requests }
}

const PREVIEW: Handlers = {
  previewFingerprints: () => ({
    rules: [
      {
        rule: 'acquirers',
        group: 'Declined',
        count: 1_962,
        from: [{ group: GROUP_A, title: 'acquirer elavon declined', count: 1_204 }],
        examples: [{ id: MESSAGE_A, message: 'acquirer elavon declined: do not honor' }],
      },
      { count: 2, from: [], examples: [] },
    ],
    examined: 5_000,
    isComplete: false,
  }),
}

describe('fingerprints list', () => {
  test('prints the rules with their conditions', async () => {
    const { stdout } = await runWith({ listFingerprints: () => ({ rules: [rule] }) }, [
      'fingerprints',
      'list',
    ])
    expect(stdout).toMatch(/acquirers +all +text: acquirer \* declined +Declined/)
    const none = await runWith({ listFingerprints: () => ({ rules: [] }) }, [
      'fingerprints',
      'list',
    ])
    expect(none.stdout).toContain('No fingerprint rules. Add "fingerprints"')
  })
})

describe('fingerprints test', () => {
  test('prints counts, groups, examples and whether it is complete', async () => {
    const { stdout } = await runWith(PREVIEW, ['fingerprints', 'test', '-s', 'payments'])
    expect(stdout.split('\n')).toEqual([
      'acquirers: 1,962 open messages would move to "Declined"',
      `  1,204 from ${GROUP_A} acquirer elavon declined`,
      `  such as ${MESSAGE_A} acquirer elavon declined: do not honor`,
      'Removed rules: 2 open messages would return to other groups',
      'Compared 5,000 open messages. Nothing was changed.',
      'The server stopped before it compared all open messages. Add --source to compare fewer.',
      '',
    ])
  })

  test('sends the rules of a config file', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'redrive-'))
    const config = {
      database: { url: 'postgres://h/db' },
      auth: { development: {} },
      sources: {},
      fingerprints: [rule],
    }
    writeFileSync(join(cwd, 'redrive.config.json'), JSON.stringify(config))
    const args = ['fingerprints', 'test', '--config', 'redrive.config.json']
    const { requests } = await runWith(PREVIEW, args, { cwd })
    expect(requests).toMatchObject([{ operation: 'previewFingerprints', body: { rules: [rule] } }])
  })
})

describe('fingerprints apply', () => {
  test('continues until all are compared, and prints the sum', async () => {
    const answers = [
      { moved: 500, examined: 2_000, nextCursor: 'c1' },
      { moved: 7, examined: 9 },
    ]
    const handlers: Handlers = {
      listSources: () => ({
        sources: [
          source({ permissions: ['view', 'discard'] }),
          source({ source: 'users', permissions: ['view'] }),
        ],
      }),
      applyFingerprints: () => answers.shift() ?? { moved: 0, examined: 0 },
    }
    const args = ['fingerprints', 'apply', '--reason', 'one runbook']
    const { stdout, questions, requests } = await runWith(handlers, args, { answers: true })
    expect(questions).toEqual([
      'Move open messages of orders to the groups of the fingerprint rules?',
    ])
    const sent = requests.filter(({ operation }) => operation === 'applyFingerprints')
    expect(sent.map(({ body }) => body)).toEqual([
      { sources: ['orders'], reason: 'one runbook' },
      { sources: ['orders'], reason: 'one runbook', cursor: 'c1' },
    ])
    expect(stdout).toBe('Moved 507 messages, compared 2,009.\n')
  })

  test('requires a reason', async () => {
    const { code, stderr } = await runWith({}, ['fingerprints', 'apply'])
    expect(code).toBe(2)
    expect(stderr).toContain('Add --reason')
  })
})
