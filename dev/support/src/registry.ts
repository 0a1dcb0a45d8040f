import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename } from 'node:path'

/** A registry with unpublished packages. It redirects requests for all others to the registry of npm. */
export interface Registry {
  readonly url: string
  close(): void
}

interface Manifest {
  readonly name: string
  readonly version: string
}

/** Serves packed packages, so that `npx` and `npm install` find them by their names. */
export async function serveTarballs(tarballs: readonly string[]): Promise<Registry> {
  const upstream = execFileSync('npm', ['config', 'get', 'registry'], { encoding: 'utf8' }).trim()
  const files = new Map(tarballs.map((path) => [`/files/${basename(path)}`, path]))
  const documents = new Map<string, (origin: string) => object>()
  for (const [path, file] of files) {
    const manifest = manifestIn(file)
    const integrity = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
    documents.set(`/${manifest.name}`, (origin) => ({
      name: manifest.name,
      'dist-tags': { latest: manifest.version },
      versions: {
        [manifest.version]: { ...manifest, dist: { tarball: `${origin}${path}`, integrity } },
      },
    }))
  }
  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? '')
    const file = files.get(path)
    const document = documents.get(path)
    if (file !== undefined) response.end(readFileSync(file))
    else if (document !== undefined) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(document(`http://${request.headers.host}`)))
    } else {
      const location = new URL((request.url ?? '').slice(1), upstream).href
      response.writeHead(302, { location }).end()
    }
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}/`, close: () => server.close() }
}

function manifestIn(tarball: string): Manifest {
  const text = execFileSync('tar', ['-xzOf', tarball, 'package/package.json'], { encoding: 'utf8' })
  return JSON.parse(text) as Manifest
}
