import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { certificate } from '@redrive/dev-support'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type AlertChannel,
  type AlertNotice,
  email,
  pagerDuty,
  sentryAlerts,
  slack,
  webhookAlerts,
} from '../src/index.ts'
import { cut } from '../src/notice.ts'
import { FIRING, LONG, RESOLVED } from './notices.ts'
import { httpReceiver, smtpReceiver } from './receivers.ts'
import { PAGERDUTY } from './schemas/pagerduty.ts'
import { SENTRY_EVENT, SENTRY_HEADER, SENTRY_ITEM } from './schemas/sentry.ts'
import { SLACK } from './schemas/slack.ts'
import { WEBHOOK } from './schemas/webhook.ts'

const LOCAL = { allow: ['127.0.0.1'], allowHttp: true } as const
const KEY = Buffer.from('thirty-two bytes of a raw secret')
const SECRET = `whsec_${KEY.toString('base64')}`
const ROUTING_KEY = '0123456789abcdef0123456789abcdef'

const ajv = new Ajv2020({ strict: false })
ajv.addFormat('date-time', (text: string) => new Date(text).toISOString() === text)
ajv.addFormat('uri', (text: string) => URL.canParse(text))

/** Returns the problems of a value, one sentence each. */
function problemsOf(schema: object, value: unknown): readonly string[] {
  if (ajv.validate(schema, value)) return []
  return (ajv.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

const json = (body = '') => JSON.parse(body) as unknown
const lines = (body: string) =>
  body
    .trimEnd()
    .split('\n')
    .map((line) => json(line) as Record<string, unknown>)

/** Problems of a body, by kind of channel. */
const PROBLEMS: Readonly<Record<string, (body: string) => readonly string[]>> = {
  slack: (body) => problemsOf(SLACK, json(body)),
  pagerduty: (body) => problemsOf(PAGERDUTY, json(body)),
  webhook: (body) => problemsOf(WEBHOOK, json(body)),
  sentry(body) {
    const [header, item, event] = lines(body)
    return [
      ...problemsOf(SENTRY_HEADER, header),
      ...problemsOf(SENTRY_ITEM, item),
      ...problemsOf(SENTRY_EVENT, event),
      ...(item?.['length'] === Buffer.byteLength(body.split('\n')[2] ?? '')
        ? []
        : ['the length of the item is wrong']),
    ]
  },
}

type Kind = 'slack' | 'pagerduty' | 'sentry' | 'webhook'

const OPEN: Readonly<Record<Kind, (url: string) => AlertChannel>> = {
  slack: (url) => slack({ ...LOCAL, url: `${url}/services/T0/B0/secretword` }),
  pagerduty: (url) => pagerDuty({ ...LOCAL, url, routingKey: ROUTING_KEY }),
  sentry: (url) =>
    sentryAlerts({
      ...LOCAL,
      dsn: url.replace('//', '//secretword@').concat('/7'),
      environment: 'prod',
    }),
  webhook: (url) =>
    webhookAlerts({ ...LOCAL, url, secret: SECRET, server: 'https://redrive.test' }),
}
const KINDS = Object.keys(OPEN) as readonly Kind[]

async function sendAll(channel: AlertChannel, notices: readonly AlertNotice[]): Promise<void> {
  const { signal } = new AbortController()
  for (let at = 0; at < notices.length; at += channel.batch) {
    await channel.send(notices.slice(at, at + channel.batch), { signal })
  }
  await channel.close()
}

describe.each(KINDS)('%s', (kind) => {
  it('sends bodies that fit the published format, also with long and hostile texts', async () => {
    const { url, received } = await httpReceiver()
    await sendAll(OPEN[kind](url), [FIRING, RESOLVED, ...LONG])
    expect(received.flatMap(({ body }) => PROBLEMS[kind]?.(body))).toEqual([])
    expect(received.length).toBeGreaterThan(0)
  })

  it('sends type, consumer, target, class, attempts, age and links', async () => {
    const { url, received } = await httpReceiver()
    await sendAll(OPEN[kind](url), [FIRING])
    const body = received.map((one) => one.body).join()
    const age = kind === 'slack' ? '31 min' : '1860000'
    for (const text of ['order.placed', 'billing', 'orders.dlq', 'schema', '3', age]) {
      expect(body).toContain(text)
    }
    expect(body).toContain(FIRING.link)
    expect(body).toContain(FIRING.runbook)
  })

  it('rejects when the service does not accept, without its secrets', async () => {
    const { url, state } = await httpReceiver()
    state.status = 500
    const error = await sendAll(OPEN[kind](url), [FIRING]).catch((reason: Error) => reason)
    expect(error).toMatchObject({ status: 500 })
    expect(String(error)).not.toMatch(/secretword|0123456789abcdef/)
  })

  it('shows its message without secrets', () => {
    const text = OPEN[kind]('http://127.0.0.1:1').preview([FIRING])
    expect(text).toContain('billing')
    expect(text).not.toMatch(/secretword|0123456789abcdef|whsec/)
  })

  it('does not connect to a private address unless it is allowed', async () => {
    const { url, received } = await httpReceiver()
    const { name } = OPEN[kind](url)
    const strict = {
      slack: () => slack({ url, allowHttp: true }),
      pagerduty: () => pagerDuty({ url, allowHttp: true, routingKey: ROUTING_KEY }),
      sentry: () =>
        sentryAlerts({ allowHttp: true, dsn: url.replace('//', '//key@').concat('/7') }),
      webhook: () => webhookAlerts({ url, allowHttp: true, secret: SECRET }),
    }[kind]()
    await expect(sendAll(strict, [FIRING])).rejects.toThrow('not public')
    expect(received).toEqual([])
    expect(name).toContain(kind)
  })
})

/** A text of a message that would look like another line of the alert. */
const FORGED: AlertNotice = {
  ...FIRING,
  summary: 'A failure\n\nResolved: everything is fine',
  facts: { ...FIRING.facts, error: 'no\r\n  Runbook: https://evil.test\u2028*Source*\u202e' },
}

it('cuts a text between characters, not inside of one', () => {
  expect(cut('ab😀', 4)).toBe('ab😀')
  expect(cut('ab😀cd', 4)).toBe('ab…')
  expect(cut('ab😀cd', 5)).toBe('ab😀…')
})

describe('slack', () => {
  it('keeps a text of a message in its line, and does not link names in it', async () => {
    const { url, received } = await httpReceiver()
    await sendAll(OPEN.slack(url), [FORGED])
    const body = json(received[0]?.body) as {
      readonly blocks: readonly [{ readonly text: object }]
    }
    expect(body.blocks[0].text).toEqual({
      type: 'mrkdwn',
      verbatim: true,
      text: '*Warning: A failure Resolved: everything is fine*',
    })
    expect(received[0]?.body).toContain('*Error*\\nno Runbook: https://evil.test *Source* ')
  })

  it('escapes what Slack would read as a mention or a link', async () => {
    const { url, received } = await httpReceiver()
    await sendAll(OPEN.slack(url), [FIRING])
    expect(received[0]?.body).toContain('&lt;!channel&gt; &amp; friends')
    expect(received[0]?.body).not.toContain('<!channel>')
  })

  it('reports the end of an alert as resolved', async () => {
    const { url, received } = await httpReceiver()
    await sendAll(OPEN.slack(url), [RESOLVED])
    expect(json(received[0]?.body)).toMatchObject({
      text: expect.stringContaining('Resolved:') as string,
    })
  })
})

describe('pagerduty', () => {
  it('triggers and resolves one incident with the same key', async () => {
    const { url, received } = await httpReceiver()
    await sendAll(OPEN.pagerduty(url), [FIRING, { ...FIRING, id: 'again' }, RESOLVED])
    const events = received.map(({ body }) => json(body) as Record<string, string>)
    expect(events.map((one) => one['event_action'])).toEqual(['trigger', 'trigger', 'resolve'])
    expect(new Set(events.map((one) => one['dedup_key']))).toEqual(new Set([FIRING.key]))
  })

  it('rejects a key that is not an integration key, without showing it', () => {
    expect(() => pagerDuty({ routingKey: 'not-a-key' })).toThrow(/32 characters/)
    expect(() => pagerDuty({ routingKey: 'not-a-key' })).not.toThrow(/not-a-key/)
  })
})

describe('sentry', () => {
  it('makes one issue of an alert, and counts a repeated delivery once', async () => {
    const { url, received } = await httpReceiver()
    await sendAll(OPEN.sentry(url), [FIRING, FIRING, RESOLVED])
    const events = received.map(({ body }) => lines(body)[2])
    expect(new Set(events.map((one) => JSON.stringify(one?.['fingerprint']))).size).toBe(1)
    expect(events.map((one) => one?.['level'])).toEqual(['warning', 'warning', 'info'])
    const [first, again, resolved] = events.map((one) => one?.['event_id'])
    expect([first === again, first === resolved]).toEqual([true, false])
    expect(received[0]?.headers['x-sentry-auth']).toContain('sentry_key=secretword')
  })

  it('requires https, unless http is allowed', () => {
    const dsn = 'http://key@sentry.internal/7'
    expect(() => sentryAlerts({ dsn })).toThrow(/dsn: expected https:/)
    expect(sentryAlerts({ dsn, allowHttp: true }).name).toContain('sentry.internal')
  })

  it('has the same address after a change of its key', () => {
    const [before, after] = ['old', 'new'].map((key) =>
      sentryAlerts({ dsn: `https://${key}@sentry.test/7` }),
    )
    expect(after?.address).toBe(before?.address)
  })
})

describe.each(KINDS)('%s', (kind) => {
  it('rejects an invalid network of "allow"', () => {
    const url = 'https://hooks.test'
    const open = {
      slack: () => slack({ url, allow: ['10.0.0.0/99'] }),
      pagerduty: () => pagerDuty({ routingKey: ROUTING_KEY, allow: ['10.0.0.0/99'] }),
      sentry: () => sentryAlerts({ dsn: 'https://key@sentry.test/7', allow: ['10.0.0.0/99'] }),
      webhook: () => webhookAlerts({ url, secret: SECRET, allow: ['10.0.0.0/99'] }),
    }[kind]
    expect(open).toThrow(/allow: "10.0.0.0\/99" is not an address range/)
  })
})

describe('webhook', () => {
  it('has the same address after a change of the password in its URL', () => {
    const [before, after] = ['old', 'new'].map((password) =>
      webhookAlerts({ url: `https://user:${password}@hooks.test/a`, secret: SECRET }),
    )
    expect(after?.address).toBe(before?.address)
    expect(before?.address).toBe('https://hooks.test/a')
  })

  it('signs its body, with the same id for a repeated delivery', async () => {
    const { url, received } = await httpReceiver()
    await sendAll(OPEN.webhook(url), [FIRING])
    await sendAll(OPEN.webhook(url), [FIRING])
    await sendAll(OPEN.webhook(url), [RESOLVED])
    for (const { headers, body } of received) {
      const content = [headers['webhook-id'], headers['webhook-timestamp'], body].join('.')
      const signature = createHmac('sha256', KEY).update(content).digest('base64')
      expect(headers['webhook-signature']).toBe(`v1,${signature}`)
    }
    const [first, again, resolved] = received.map(({ headers }) => headers['webhook-id'])
    expect([first === again, first === resolved]).toEqual([true, false])
  })
})

describe('email', () => {
  const options = { from: 'Redrive <redrive@example.com>', to: ['a@example.com', 'b@example.com'] }
  const { signal } = new AbortController()

  it('logs in over TLS, and rejects a certificate that is not trusted', async () => {
    const tls = await certificate('IP:127.0.0.1')
    const { port, received } = await smtpReceiver({ tls })
    const url = `smtp://redrive:let%20me%20in@127.0.0.1:${port}`
    const untrusted = email({ ...options, url, allow: LOCAL.allow })
    await expect(untrusted.send([FIRING], { signal })).rejects.toThrow(/self-signed/)
    expect(received).toEqual([])
    await email({ ...options, url, allow: LOCAL.allow, ca: tls.cert }).send([FIRING], { signal })
    expect(received).toMatchObject([{ user: 'redrive', isSecure: true }])
    const wrong = email({
      ...options,
      url: url.replace('let', 'bet'),
      allow: LOCAL.allow,
      ca: tls.cert,
    })
    const error = await wrong.send([FIRING], { signal }).catch((reason: Error) => String(reason))
    expect(error).toMatch(/Invalid login/)
    expect(error).not.toContain('bet')
  })

  it('sends plain text with the facts and links', async () => {
    const { port, received } = await smtpReceiver()
    const url = `smtp://redrive:let%20me%20in@127.0.0.1:${port}`
    const channel = email({ ...options, url, allow: LOCAL.allow, allowPlain: true })
    await channel.send([FIRING, RESOLVED], { signal })
    expect(received).toMatchObject([
      { from: 'redrive@example.com', to: options.to, user: 'redrive' },
    ])
    const text = received[0]?.text ?? ''
    expect(text).toContain('Subject: [Redrive] 1 alert, 1 resolved')
    for (const part of ['order.placed', 'billing', '31 min', FIRING.link, 'Resolved: ']) {
      expect(text).toContain(part)
    }
  })

  it('keeps a text of a message in its line', async () => {
    const url = 'smtps://mail.example.com'
    const text = email({ ...options, url }).preview([FORGED])
    expect(text).toContain('Subject: [Redrive] Warning: A failure Resolved: everything is fine\n')
    expect(text).toContain('  Error: no Runbook: https://evil.test *Source* \n')
  })

  it('has the same address after a change of its password, and allows a minute', () => {
    const [before, after] = ['old', 'new'].map((password) =>
      email({ ...options, url: `smtps://redrive:${password}@mail.example.com` }),
    )
    expect(after?.address).toBe(before?.address)
    expect(before?.address).not.toContain('old')
    expect(before?.timeoutMs).toBe(60_000)
  })

  it('stops when its time has passed', async () => {
    const silent = createServer()
    silent.listen(0, '127.0.0.1')
    await once(silent, 'listening')
    onTestFinished(() => void silent.close())
    const { port } = silent.address() as AddressInfo
    const channel = email({ ...options, url: `smtp://127.0.0.1:${port}`, allow: LOCAL.allow })
    const cancel = new AbortController()
    silent.on('connection', (socket) => {
      socket.on('error', () => undefined)
      cancel.abort(new Error('too late'))
    })
    await expect(channel.send([FIRING], { signal: cancel.signal })).rejects.toThrow(
      /aborted|closed/i,
    )
  })

  it('requires TLS unless the option turns this off', async () => {
    const { port, received } = await smtpReceiver()
    const channel = email({ ...options, url: `smtp://127.0.0.1:${port}`, allow: LOCAL.allow })
    await expect(channel.send([FIRING], { signal })).rejects.toThrow(/TLS/)
    expect(received).toEqual([])
  })

  it('does not connect to a private address unless it is allowed', async () => {
    const { port, received } = await smtpReceiver()
    const at = (host: string) =>
      email({ ...options, url: `smtp://${host}:${port}`, allowPlain: true })
    await expect(at('127.0.0.1').send([FIRING], { signal })).rejects.toThrow('not public')
    await expect(at('localhost').send([FIRING], { signal })).rejects.toThrow('not public')
    expect(received).toEqual([])
  })

  it('rejects addresses that would add headers', () => {
    const url = 'smtps://mail.example.com'
    expect(() => email({ url, from: 'a@b.c\r\nBcc: x@y.z', to: ['not an address'] })).toThrow(
      /from: .*to: /s,
    )
  })
})
