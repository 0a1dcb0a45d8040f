import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import Fastify from 'fastify'
import { afterAll, describe, expect, test } from 'vitest'
import { registerConsole } from '../src/http/console.ts'
import { addSecurityHeaders } from '../src/http/headers.ts'
import { sendProblem } from '../src/http/problem.ts'
import { publicUrlOf, safeReturn, withoutBase } from '../src/identity/public-url.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-console-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
mkdirSync(join(folder, 'assets'))
writeFileSync(join(folder, 'assets/index-a1b2.js'), 'export {}')
writeFileSync(join(folder, 'theme.js'), '// theme')
writeFileSync(
  join(folder, 'index.html'),
  `<html><meta name="redrive-base" content="./" /><meta name="redrive-version" content="" />
<meta name="redrive-sign-in" content="" /><script src="./theme.js"></script></html>`,
)

function appWith(options: { base?: string; signIn?: string; from?: string } = {}) {
  const { base = '/', signIn, from = folder } = options
  const app = Fastify({ rewriteUrl: ({ url = '/' }) => withoutBase(url, base) })
  afterAll(() => app.close())
  addSecurityHeaders(app, { publicUrl: 'https://redrive.test' })
  app.setErrorHandler((error, request, reply) => sendProblem(request, reply, error))
  registerConsole(app, { base, version: '1.2.3', signIn, folder: from })
  return app
}

const HTML = { accept: 'text/html,application/xhtml+xml' }

describe('the console', () => {
  test.for(['/', '/groups', '/groups/0190163d-8694-739b-aea5-966c26f8ad91?tab=why'])(
    'has a page at %s',
    async (url) => {
      const answer = await appWith().inject({ url, headers: HTML })
      expect(answer.statusCode).toBe(200)
      expect(answer.headers['content-type']).toBe('text/html; charset=utf-8')
      expect(answer.headers['cache-control']).toBe('no-cache')
      expect(answer.headers['content-security-policy']).toContain("script-src 'self'")
      expect(answer.body).toContain('<script src="/theme.js">')
    },
  )

  test.for([
    ['a program', '/groups', { accept: 'application/json' }],
    ['an unknown operation', '/api/v1/nothing', HTML],
    ['an asset of an earlier version', '/assets/index-0000.js', HTML],
    ['a login path', '/auth/nothing', HTML],
  ] as const)('returns a problem and no page for %s', async ([, url, headers]) => {
    const answer = await appWith().inject({ url, headers })
    expect(answer.statusCode).toBe(404)
    expect(answer.json()).toMatchObject({ code: 'not_found' })
  })

  test('writes the path, the version and the provider into the page, escaped', async () => {
    const app = appWith({ base: '/tools/redrive/', signIn: '"><script>' })
    const { body } = await app.inject({ url: '/tools/redrive/groups', headers: HTML })
    expect(body).toContain('name="redrive-base" content="/tools/redrive/"')
    expect(body).toContain('name="redrive-version" content="1.2.3"')
    expect(body).toContain('<script src="/tools/redrive/theme.js">')
    expect(body).not.toContain('"><script>')
  })

  test.for(['/tools/redrive', '/tools/redrive/', '/'])(
    'is found under a path at %s, whether the proxy removes the path or not',
    async (url) => {
      const app = appWith({ base: '/tools/redrive/' })
      expect((await app.inject({ url, headers: HTML })).statusCode).toBe(200)
    },
  )

  test('lets browsers keep files with a hash in their name, and check the others', async () => {
    const app = appWith()
    const hashed = await app.inject('/assets/index-a1b2.js')
    expect(hashed.headers['cache-control']).toBe('public, max-age=31536000, immutable')
    const theme = await app.inject('/theme.js')
    expect(theme.headers['cache-control']).toBe('no-cache')
    const headers = { 'if-none-match': String(theme.headers['etag']) }
    expect((await app.inject({ url: '/theme.js', headers })).statusCode).toBe(304)
  })

  test('compresses for clients that accept it', async () => {
    const app = appWith()
    const headers = { 'accept-encoding': 'gzip, br' }
    const answer = await app.inject({ url: '/theme.js', headers })
    expect(answer.headers['content-encoding']).toBe('gzip')
    expect(gunzipSync(answer.rawPayload).toString()).toBe('// theme')
    expect((await app.inject('/theme.js')).body).toBe('// theme')
  })

  test('is left out when it is not built', async () => {
    const app = appWith({ from: join(folder, 'nothing') })
    expect((await app.inject({ url: '/', headers: HTML })).statusCode).toBe(404)
  })
})

test('a login returns only to pages of this server', () => {
  const url = publicUrlOf('https://host.test/tools/redrive')
  const home = 'https://host.test/tools/redrive/'
  expect(safeReturn('/tools/redrive/groups?q=a', url)).toBe(`${home}groups?q=a`)
  for (const other of ['/', '/other', '//evil.test/', '/tools/redrive/auth/login', undefined]) {
    expect(safeReturn(other, url)).toBe(home)
  }
})
