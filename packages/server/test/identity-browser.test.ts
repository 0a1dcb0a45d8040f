import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { services, certificate } from '@redrive/dev-support'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { serverDatabase } from './database-stage.ts'
import { listening, openIdProvider, portOf, type World, worldOf } from './identity-stage.ts'

/** 1 min, because a browser is slow on a busy machine. */
const SLOW_MS = 60_000
const pool = await serverDatabase('redrive_server_browser')
let browser: Browser
let world: World
let ours: string
let issuer: string

beforeAll(async () => {
  await services('up', 'chromium')
  const executablePath = await services('do', 'chromium', 'path')
  // Chromium has no sandbox for root, and tests in a container run as root.
  browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  // The provider is on another site than the server, as in production.
  const free = await listening(() => undefined)
  const port = portOf(free)
  await new Promise((resolve) => free.close(resolve))
  ours = `https://127.0.0.1:${port}`
  issuer = await openIdProvider([`${ours}/auth/callback`], 'localhost')
  const https = await certificate('IP:127.0.0.1')
  world = await worldOf({ pool, issuer, publicUrl: ours, server: { https } })
  await world.app.listen({ host: '127.0.0.1', port })
}, SLOW_MS)
afterAll(() => browser?.close())

async function loggedIn(): Promise<BrowserContext> {
  const context = await browser.newContext({ ignoreHTTPSErrors: true })
  const page = await context.newPage()
  await page.goto(`${ours}/auth/login?returnTo=/groups`)
  await page.fill('input[name=login]', 'alice')
  await page.fill('input[name=password]', 'any')
  await page.click('button[type=submit]')
  await page.click('button[type=submit]')
  await page.waitForURL(`${ours}/groups`)
  return context
}

const isLoggedIn = async (context: BrowserContext) =>
  (await context.request.get(`${ours}/me`)).status() === 200

test('Chromium can log in at the provider and log out', {
  timeout: SLOW_MS,
}, async () => {
  const context = await loggedIn()
  const [page] = context.pages()
  const cookies = await context.cookies(ours)
  expect(cookies.filter(({ name }) => name.startsWith('__Host-'))).toMatchObject([
    { name: '__Host-redrive', secure: true, httpOnly: true, sameSite: 'Lax', path: '/' },
  ])
  const inPage = (text: string) => page?.evaluate<unknown>(text)
  expect(await inPage('document.cookie')).not.toContain('redrive')
  const me = (await inPage(`fetch('/me').then((answer) => answer.json())`)) as { csrf: string }
  expect(me).toMatchObject({ person: `${issuer}#alice`, via: 'session' })
  const change = (headers: Record<string, string>) =>
    inPage(`fetch('/change', { method: 'POST', headers: ${JSON.stringify(headers)} })
      .then((answer) => answer.status)`)
  expect(await change({})).toBe(403)
  expect(await change({ 'x-redrive-csrf': me.csrf })).toBe(204)
  const csrfHeader = JSON.stringify({ 'x-redrive-csrf': me.csrf })
  expect(
    await inPage(`fetch('/auth/logout', { method: 'POST', headers: ${csrfHeader} })
      .then((answer) => answer.status)`),
  ).toBe(204)
  expect(await isLoggedIn(context)).toBe(false)
  await context.close()
})

/** Serves a page of an attacker: on another site, or on another port, which is the same site. */
async function evilPage(host: 'localhost' | '127.0.0.1'): Promise<string> {
  const page = `<form method=post action="${ours}/change"><input name=a value=b></form>`
  const listener: RequestListener = (_request, response) => {
    response.setHeader('content-type', 'text/html').end(page)
  }
  if (host === 'localhost') return `http://localhost:${portOf(await listening(listener))}/`
  const server = createServer(await certificate('IP:127.0.0.1'), listener)
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  afterAll(() => server.close())
  return `https://${host}:${portOf(server)}/`
}

const ATTACK = `(async (ours) => {
  for (const path of ['/change', '/auth/logout']) {
    for (const type of [undefined, 'text/plain', 'application/x-www-form-urlencoded']) {
      const headers = type === undefined ? {} : { 'content-type': type }
      const body = type === undefined ? undefined : 'a=b'
      await fetch(ours + path, { method: 'POST', credentials: 'include', mode: 'no-cors', headers, body })
        .catch(() => undefined)
    }
  }
  return fetch(ours + '/me', { credentials: 'include' }).then(() => 'read', () => 'blocked')
})`

test.for([
  ['of another site', 'localhost', 401],
  ['of the same site, but another origin', '127.0.0.1', 403],
] as const)(
  'a page %s cannot act for a logged-in user or read data',
  { timeout: SLOW_MS },
  async ([, host, refusal]) => {
    const context = await loggedIn()
    const statuses: number[] = []
    world.app.server.on('request', (request, response) => {
      response.on('finish', () => request.url === '/change' && statuses.push(response.statusCode))
    })
    const page = await context.newPage()
    await page.goto(await evilPage(host))
    expect(await page.evaluate(`${ATTACK}('${ours}')`)).toBe('blocked')
    await page.evaluate('document.forms[0].submit()')
    await page.waitForURL(`${ours}/change`)
    // Bodies that are not JSON are rejected before authentication.
    expect(new Set(statuses)).toEqual(new Set([refusal, 415]))
    expect(await isLoggedIn(context)).toBe(true)
    await context.close()
  },
)
