import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { noSuchRoute } from './api.ts'

export interface ConsoleOptions {
  /** Path of the public URL, with a slash at both ends. */
  readonly base: string
  readonly version: string
  /** Host of the OpenID provider. Undefined in development mode, which has no login. */
  readonly signIn: string | undefined
  /** Folder with the build of the console. Default: the folder in this package. */
  readonly folder?: string
}

/** The build of packages/console. The path is the same from `src` and from `dist`. */
const FOLDER = fileURLToPath(new URL('../../dist/console/', import.meta.url))
const PAGE = 'index.html'

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}

/** The name of such a file contains the hash of its content, so that browsers can keep it forever. */
const IS_HASHED = /^assets\//
/** Paths that are never a page. An unknown one is an error of a program. */
const NOT_PAGES = /^\/(api|auth|assets|metrics)(\/|$)/

/** Registers the pages of the console. They contain no data, so they need no authentication. */
export function registerConsole(app: FastifyInstance, options: ConsoleOptions): void {
  const { folder = FOLDER } = options
  if (!existsSync(join(folder, PAGE))) {
    app.log.info('The console is not built, so only the API is served. Run `pnpm build`.')
    return
  }
  for (const path of globSync('**/*.*', { cwd: folder })) {
    if (path === PAGE) continue
    const file = fileOf(path, readFileSync(join(folder, path)))
    app.get(`/${path}`, async (request, reply) => send(request, reply, file))
  }
  const page = fileOf(PAGE, Buffer.from(pageOf(readFileSync(join(folder, PAGE), 'utf8'), options)))
  // Every other path is a page of the console, which shows it or reports that it does not exist.
  app.get('/*', async (request, reply) => {
    if (!isForPage(request)) throw noSuchRoute()
    return send(request, reply, page)
  })
}

const isForPage = ({ url, headers }: FastifyRequest) =>
  !NOT_PAGES.test(url) && headers.accept?.includes('text/html') === true

/** Returns the page with the addresses and facts of this server. */
function pageOf(html: string, { base, version, signIn = '' }: ConsoleOptions): string {
  const facts = { base, version, 'sign-in': signIn }
  const placed = html.replaceAll('="./', `="${escaped(base)}`)
  return Object.entries(facts).reduce(
    (text, [name, value]) =>
      text.replace(
        new RegExp(`(name="redrive-${name}" content=")[^"]*`),
        (_, start: string) => start + escaped(value),
      ),
    placed,
  )
}

const escaped = (text: string) => text.replaceAll(/[&"<>]/g, (char) => `&#${char.charCodeAt(0)};`)

interface ConsoleFile {
  readonly bytes: Buffer
  readonly gzip: Buffer
  readonly type: string
  readonly etag: string
  readonly cache: string
}

const fileOf = (path: string, bytes: Buffer): ConsoleFile => ({
  bytes,
  gzip: gzipSync(bytes),
  type: TYPES[extname(path)] ?? 'application/octet-stream',
  etag: `"${createHash('sha256').update(bytes).digest('base64url')}"`,
  cache: IS_HASHED.test(path) ? 'public, max-age=31536000, immutable' : 'no-cache',
})

function send(
  { headers }: FastifyRequest,
  reply: FastifyReply,
  { bytes, gzip, type, etag, cache }: ConsoleFile,
): FastifyReply {
  reply.headers({ 'cache-control': cache, vary: 'accept-encoding', etag })
  if (headers['if-none-match']?.includes(etag)) return reply.code(304).send()
  const accepted = headers['accept-encoding']
  const isGzip = typeof accepted === 'string' && /\bgzip\b/.test(accepted)
  if (isGzip) reply.header('content-encoding', 'gzip')
  return reply.type(type).send(isGzip ? gzip : bytes)
}
