import { catalog } from '@redrive/catalog'
import { freePort } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { expect, test } from 'vitest'
import { fill } from './http-stage.ts'
import { Browser, CLIENT, GROUPS, openIdProvider, type World } from './identity-stage.ts'
import { serveDatabase, ServerProcess } from './serve-stage.ts'

const { pool, base } = await serveDatabase('redrive_server_leaver')
const SECOND = 1_000
/** The shortest `groupsMaxAge`. */
const GROUPS_MAX_AGE = 300 * SECOND
/** The stated time in which a stream ends after its caller has lost the permission. */
const STREAM_END = 10 * SECOND
/** The rest of the maximum age when the user leaves. */
const LEFT = 6 * SECOND

/** Returns what a `Browser` needs to use a server in another process. */
const remote = (serverUrl: string) =>
  ({
    app: {
      async inject({
        method,
        url,
        headers,
      }: {
        method: string
        url: string
        headers: Record<string, string>
      }) {
        const answer = await fetch(serverUrl + url, { method, headers, redirect: 'manual' })
        const body = await answer.text()
        const setCookie = { 'set-cookie': answer.headers.getSetCookie() }
        return {
          statusCode: answer.status,
          headers: { ...Object.fromEntries(answer.headers), ...setCookie },
          body,
          json: () => JSON.parse(body) as unknown,
        }
      },
    },
  }) as unknown as World

async function startServer() {
  const port = await freePort()
  const publicUrl = `http://127.0.0.1:${port}`
  const issuer = await openIdProvider([`${publicUrl}/auth/callback`])
  const scopes = ['openid', 'profile']
  const client = { clientId: CLIENT.id, clientSecret: CLIENT.secret }
  const config = {
    ...base,
    publicUrl,
    approval: 'another_person',
    auth: { oidc: { issuer, ...client, scopes, groupsMaxAge: '5m' } },
    access: [{ groups: ['operators'], roles: ['operator'], sources: ['orders'] }],
  }
  return new ServerProcess(config, { port, roles: 'api' }).waitForOutput('"msg":"Serving ')
}

/** The requests of a credential, and the start of the last successful one. */
function watched(url: string, headers: Readonly<Record<string, string>>) {
  const found = { isRefused: false, lastSuccess: 0 }
  const ask = async (): Promise<number> => {
    const start = Date.now()
    const { status } = await fetch(`${url}/api/v1/groups`, { headers })
    if (status === 200) found.lastSuccess = start
    found.isRefused = status === 401
    return status
  }
  return { found, ask }
}

/** Reads a stream until it ends. */
function opened(url: string, headers: Readonly<Record<string, string>>) {
  const found = { events: 0, endedAt: 0 }
  const reading = (async () => {
    const answer = await fetch(url, { headers })
    for await (const _ of answer.body ?? []) found.events += 1
  })().finally(() => {
    found.endedAt = Date.now()
  })
  // The server may cut the connection.
  reading.catch(() => undefined)
  return found
}

test('a user who left loses session, token and streams within groupsMaxAge, without a sign-in', async () => {
  const server = await startServer()
  const browser = new Browser(remote(server.url), server.url)
  expect((await browser.login('alice')).statusCode).toBe(302)
  const cookie = { cookie: browser.ours.header }
  const me = (await (await fetch(`${server.url}/api/v1/me`, { headers: cookie })).json()) as {
    csrf: string
  }
  const created = await fetch(`${server.url}/api/v1/tokens`, {
    method: 'POST',
    headers: {
      ...cookie,
      origin: server.url,
      'x-redrive-csrf': me.csrf,
      'idempotency-key': crypto.randomUUID(),
      'content-type': 'application/json',
    },
    body: JSON.stringify({ name: 't', actions: ['view'], sources: ['orders'], days: 30 }),
  })
  const { secret } = (await created.json()) as { secret: string }
  const bearer = { authorization: `Bearer ${secret}` }
  const stored = catalog({ pool })
  const { ids } = await fill(stored, 'orders')
  const { id } = await stored.replays.plan({ selection: { ids }, by: 'planner' })

  const session = watched(server.url, cookie)
  const token = watched(server.url, bearer)
  const events = `${server.url}/api/v1/replays/${id}/events`
  const streams = [opened(events, cookie), opened(events, bearer)]
  await until('both streams are open', () => streams.every((one) => one.events > 0))

  // Most of the maximum age has passed since the sign-in.
  const { rows } = await pool.query<{ at: Date }>(
    `update redrive_server.person set logged_in_at = now() - $1 * interval '1 ms' returning logged_in_at as at`,
    [GROUPS_MAX_AGE - LEFT],
  )
  const end = (rows[0]?.at.getTime() ?? 0) + GROUPS_MAX_AGE
  expect([await session.ask(), await token.ask()]).toEqual([200, 200])
  GROUPS['alice'] = []
  await until(
    'both credentials are refused',
    async () => {
      await Promise.all([session.ask(), token.ask()])
      return session.found.isRefused && token.found.isRefused
    },
    { timeout: '60s' },
  )
  await until('both streams end', () => streams.every(({ endedAt }) => endedAt > 0), {
    timeout: '60s',
  })
  const lateBy = {
    session: session.found.lastSuccess - end,
    token: token.found.lastSuccess - end,
    streams: Math.max(...streams.map(({ endedAt }) => endedAt)) - end,
  }
  expect(lateBy.session).toBeLessThanOrEqual(0)
  expect(lateBy.token).toBeLessThanOrEqual(0)
  expect(lateBy.streams).toBeLessThanOrEqual(STREAM_END)
  // Otherwise the credentials would have ended for another reason.
  expect(Math.min(session.found.lastSuccess, token.found.lastSuccess)).toBeGreaterThan(end - LEFT)

  await browser.login('alice')
  const again = await fetch(`${server.url}/api/v1/groups`, {
    headers: { cookie: browser.ours.header },
  })
  expect(again.status).toBe(403)
  expect((await fetch(`${server.url}/api/v1/groups`, { headers: bearer })).status).toBe(401)
})
