import { request } from 'node:http'
import type { Scenario } from '../../harness/scenario.ts'
import { startReplica } from '../replica.ts'
import { attack, type Scene } from './attack.ts'

/**
 * Without a login all users of the machine are the same person. Pages in the browser must not count
 * as this person.
 */
export const DEVELOPMENT: Scenario = attack(
  'development',
  'an internet page resolves its host name to this machine, where a development server listens',
  async (scene) => {
    const { target } = scene
    const config = { ...target.config, auth: { development: {} }, access: [] }
    const server = await startReplica({
      ...{ name: 'development', roles: 'api', folder: target.folder, config },
    })
    try {
      await play(scene, server.url)
    } finally {
      await server.kill()
    }
  },
)

const HOSTS = [
  'evil.test',
  'evil.test:80',
  '127.0.0.1.evil.test',
  'localhost.evil.test',
  '127.0.0.1@evil.test',
  'evil.test#127.0.0.1',
  '0.0.0.0',
  '[::]',
  '2130706433',
  '127.0.0.1, evil.test',
]

/** Headers that a browser sends for a page of another site; an old browser sends only one of them. */
const FOREIGN: readonly Readonly<Record<string, string>>[] = [
  { origin: 'http://evil.test', 'sec-fetch-site': 'cross-site' },
  { origin: 'http://evil.test' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'same-site' },
  { origin: 'null' },
]

async function play({ tries }: Scene, url: string): Promise<void> {
  const { host } = new URL(url)
  if ((await statusOf(url, 'GET', { host })) !== 200)
    throw new Error('The development server rejects a local request.')
  for (const name of HOSTS) {
    const status = await statusOf(url, 'GET', { host: name })
    tries.note(`a page with the host ${name} can read`, status < 400)
  }
  for (const headers of FOREIGN) {
    const sent = { host, 'idempotency-key': JSON.stringify(headers).slice(0, 50), ...headers }
    const status = await statusOf(url, 'POST', sent)
    tries.note(`a page with ${JSON.stringify(headers)} changes something`, status !== 403)
  }
}

/** Returns the status. It does not use `fetch`, which cannot set the host header. */
function statusOf(
  url: string,
  method: 'GET' | 'POST',
  headers: Readonly<Record<string, string>>,
): Promise<number> {
  const path = method === 'GET' ? '/api/v1/me' : '/api/v1/replays/acknowledge-restore'
  return new Promise((resolve, reject) => {
    request(`${url}${path}`, { method, headers: { ...headers } }, (answer) => {
      answer.resume()
      resolve(answer.statusCode ?? 0)
    })
      .on('error', reject)
      .end()
  })
}
