import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import type { Scenario } from '../../harness/scenario.ts'
import { until } from '../../harness/wait.ts'
import { type Person, isOk, must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { approve, planned } from './runs.ts'

/** Line breaks that would end a line and start a new header. */
const LINE = 'x\r\nX-Injected: 1\r\nSet-Cookie: injected=1'
const OTHERS = ['x\nX-Injected: 1', 'x\rX-Injected: 1', 'x\u010d\u010aX-Injected: 1', 'x\0y', LINE]

/** Line breaks in headers stay characters of a value. */
export const CRLF: Scenario = attack(
  'crlf',
  'line breaks in headers of messages, in replays to the broker and in responses',
  async (scene) => {
    await replayed(scene)
    await changed(scene)
    await inAnswers(scene)
  },
)

async function replayed({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool } = target
  const id = `${LINE}${randomUUID()}`
  const headers = Object.fromEntries([
    ...OTHERS.map((text, at) => [`x-${at}`, text]),
    ['x\r\nX-Injected', '1'],
  ]) as Record<string, string>
  const special = { id, key: LINE, headers, type: LINE, contentType: `application/json\r\nX: 1` }
  const ids = await queues.kill(pool, 'orders', [{ ...special, code: 'E\r\n1', message: LINE }])
  const run = await planned(as.alice, { ids })
  must(await approve(as.bob, run))
  let message: Awaited<ReturnType<typeof queues.take>>
  const isThere = async () => {
    message = await queues.take(queues.of('orders'))
    return message?.properties.messageId === id
  }
  await until('the message is back in its queue', isThere, { withinMs: 15_000, everyMs: 50 })
  const got = (message?.properties.headers ?? {}) as Record<string, unknown>
  for (const [name, value] of Object.entries(headers)) {
    tries.note(`${JSON.stringify(name)} is changed by a replay`, got[name] !== value)
  }
  const known = (name: string) => Object.hasOwn(headers, name) || OURS.test(name)
  const added = Object.keys(got).filter((name) => !known(name))
  tries.note(`a replay adds the headers ${JSON.stringify(added)}`, added.length > 0)
  const [first = ''] = ids
  for (const path of ['', '/payload?reason=test', '/replays', '/comments']) {
    await split({ target, tries }, as.root, `/api/v1/dead-letters/${first}${path}`)
  }
}

/** Redrive's headers, and the broker's delivery count. */
const OURS = /^(redrive-|x-delivery-count$)/

/** Tries to set headers with a plan; no field of a plan is a header. */
async function changed({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool } = target
  const [id = ''] = await queues.kill(pool, 'orders', [{}])
  const { headers: response } = await as.alice('GET', `/api/v1/dead-letters/${id}`)
  const ifMatch = { 'if-match': response.get('etag') ?? '' }
  const edit = Buffer.from('{}').toString('base64')
  const changes = [
    { edit, headers: { x: LINE } },
    { edit, key: LINE },
    { edit, contentType: LINE },
    { patch: [{ op: 'add', path: '/headers/x', value: LINE }], headers: { x: LINE } },
    { headers: { x: LINE } },
  ]
  for (const change of changes) {
    const body = { selection: { ids: [id] }, change }
    const answer = await as.alice('POST', '/api/v1/replays', { body, headers: ifMatch })
    tries.note(`a plan sets headers with ${Object.keys(change).join(', ')}`, isOk(answer))
  }
}

/** Checks that no text of a request comes back as a header. */
async function inAnswers(scene: Scene): Promise<void> {
  const { as } = scene.target
  for (const text of OTHERS) {
    const written = encodeURIComponent(text)
    const paths = [
      `/auth/login?returnTo=/${written}`,
      `/auth/login?returnTo=${written}`,
      `/auth/callback?error=${written}&state=${written}`,
      `/api/v1/groups/${written}`,
      `/api/v1/groups?text=${written}`,
      `/api/v1/${written}`,
      `/${written}`,
    ]
    for (const path of paths) await split(scene, as.root, path)
  }
}

async function split(
  { target, tries }: Pick<Scene, 'target' | 'tries'>,
  asking: Person,
  path: string,
): Promise<void> {
  const raw = await head(target.server.url, path, asking.credentials)
  const isSplit = /^(x-injected|set-cookie: injected)/im.test(raw)
  tries.note(`${path} returns a header of the attacker`, isSplit)
  tries.note(`${path} returns ${raw.slice(0, 15)}`, !/^HTTP\/1\.1 [234]/.test(raw))
}

/** Returns the raw response up to the empty line. */
function head(
  url: string,
  path: string,
  credentials: Readonly<Record<string, string>>,
): Promise<string> {
  const { hostname, port, host } = new URL(url)
  const lines = Object.entries(credentials).map(([name, value]) => `${name}: ${value}\r\n`)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.setEncoding('latin1').on('error', reject)
    socket.on('data', (chunk: string) => {
      text += chunk
      if (!text.includes('\r\n\r\n')) return
      socket.destroy()
      resolve(text.slice(0, text.indexOf('\r\n\r\n')))
    })
    socket.on('close', () => resolve(text))
    socket.write(
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${lines.join('')}Connection: close\r\n\r\n`,
    )
  })
}
