import { once } from 'node:events'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { run } from './world.ts'

const ROUTING_KEY = '0123456789abcdef0123456789abcdef'
const ALERTS = {
  slack: [{ url: 'https://hooks.slack.com/services/T0/B0/secretword' }],
  pagerduty: [{ routingKey: ROUTING_KEY }],
  sentry: [{ dsn: 'https://secretword@o1.ingest.sentry.io/2' }],
  webhooks: [{ url: 'https://hook.test/secretword', secret: `whsec_${'c2Vj'.repeat(8)}` }],
  email: [{ url: 'smtps://me:secretword@mail.test', from: 'a@b.de', to: ['ops@b.de'] }],
}

function redrive(alerts: object, ...args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-alerts-'))
  const file = join(folder, 'redrive.config.json')
  const config = {
    database: { url: 'postgres://localhost/redrive' },
    auth: { development: { name: 'dev' } },
    approval: 'anyone',
    sources: {},
    alerts,
  }
  writeFileSync(file, JSON.stringify(config))
  return run(['alerts', 'test', ...args], { env: { REDRIVE_CONFIG: file }, isRealTime: true })
}

/** A mail server that accepts everything. */
async function mailServer() {
  const mails: string[] = []
  const server = createServer((socket) => {
    let isData = false
    socket.write('220 mail.test\r\n')
    socket.on('data', (chunk) => {
      const text = chunk.toString()
      if (isData) {
        mails.push(text)
        isData = !text.endsWith('\r\n.\r\n')
        if (!isData) socket.write('250 stored\r\n')
      } else if (text.startsWith('QUIT')) socket.end('221 bye\r\n')
      else {
        isData = text.startsWith('DATA')
        socket.write(isData ? '354 continue\r\n' : '250 ok\r\n')
      }
    })
    socket.on('error', () => undefined)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return { port: (server.address() as AddressInfo).port, mails }
}

test('the dry run shows the message of every channel, without secrets', async () => {
  const { stdout, code } = await redrive(ALERTS, '--dry-run')
  expect(code).toBe(0)
  for (const kind of Object.keys(ALERTS)) expect(stdout).toContain(`alerts.${kind}[0]`)
  for (const part of ['"event_action": "resolve"', 'Resolved: ', 'Subject: [Redrive]', 'blocks']) {
    expect(stdout).toContain(part)
  }
  expect(stdout).not.toMatch(/secretword|0123456789abcdef|whsec_/)
})

test('a channel can be chosen by its kind or place', async () => {
  const { stdout } = await redrive(
    { ...ALERTS, slack: [...ALERTS.slack, ...ALERTS.slack] },
    'slack[1]',
    '--dry-run',
    '--jsonl',
  )
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { channel: string }).channel),
  ).toEqual(['alerts.slack[1]'])
  const { stderr, code } = await redrive(ALERTS, 'teams')
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining('Channels: webhooks[0], slack[0]') as string,
  ])
})

test('a test sends an alert and its end, and reports the channel that rejects it', async () => {
  const { port, mails } = await mailServer()
  const email = {
    url: `smtp://127.0.0.1:${port}`,
    from: 'a@b.de',
    to: ['ops@b.de'],
    allowPlain: true,
  }
  const slack = { url: 'https://127.0.0.1:9/secretword' }
  const { stdout, code } = await redrive({
    email: [email],
    allowPrivate: ['127.0.0.1'],
    slack: [slack],
  })
  expect(code).toBe(1)
  expect(stdout).toContain(
    `alerts.email[0] (email 127.0.0.1:${port}): accepted an alert and its end`,
  )
  expect(stdout).toMatch(/alerts\.slack\[0\] \(slack 127\.0\.0\.1:9\): .*ECONNREFUSED/)
  expect(stdout).not.toContain('secretword')
  expect(mails.join()).toMatch(/Warning: This is a test[^]*Resolved: This is a test/)
  const refused = await redrive({ slack: [slack] }, 'slack')
  expect(refused.stdout).toContain('not public')
})
