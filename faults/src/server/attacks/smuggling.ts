import { connect } from 'node:net'
import type { Scenario } from '../../harness/scenario.ts'
import { attack, type Scene } from './attack.ts'

/** 2 s: the server responds in milliseconds. A request that it waits for must not count as rejected. */
const ANSWER_MS = 2_000

/** A proxy and the server must not read different requests from the same bytes. */
export const SMUGGLING: Scenario = attack(
  'smuggling',
  'requests whose end is ambiguous, with another request inside',
  async ({ target, tries }) => {
    const { authorization = '' } = target.as.root.credentials
    for (const [what, text] of Object.entries(requestsOf(`authorization: ${authorization}`))) {
      const statuses = statusesIn(await answerTo(target.server.url, text))
      tries.note(`${what}: a second request was read (${statuses.join(', ')})`, statuses.length > 1)
      tries.note(`${what} was accepted (${statuses[0]})`, isAccepted(statuses[0]))
    }
    await staysTheSame({ target, tries })
  },
)

/** Accepted, or the protocol was changed. */
const isAccepted = (status: number | undefined) =>
  status !== undefined && (status === 101 || (status >= 200 && status < 300))

const INNER = 'GET /api/v1/me HTTP/1.1\r\nhost: x\r\n\r\n'

/** Requests by name, each with another one behind the part that is ambiguous. */
function requestsOf(authorization: string): Readonly<Record<string, string>> {
  const post = (...lines: readonly string[]) =>
    [
      'POST /api/v1/dead-letters/discard HTTP/1.1',
      ...['host: x', authorization, 'content-type: application/json', ...lines],
      '\r\n',
    ].join('\r\n')
  const get = (...lines: readonly string[]) =>
    ['GET /api/v1/me HTTP/1.1', ...lines, '\r\n'].join('\r\n')
  const chunked = 'transfer-encoding: chunked'
  const inner = `${INNER.length.toString(16)}\r\n${INNER}\r\n0\r\n\r\n`
  return {
    'a length and chunks': `${post('content-length: 4', chunked)}0\r\n\r\n${INNER}`,
    'chunks and a length': `${post(chunked, `content-length: ${inner.length}`)}${inner}`,
    'two lengths': `${post('content-length: 0', `content-length: ${INNER.length}`)}${INNER}`,
    'a list of lengths': `${post(`content-length: 0, ${INNER.length}`)}${INNER}`,
    'a length with a sign': `${post(`content-length: +${INNER.length}`)}${INNER}`,
    'a negative length': `${post('content-length: -1')}${INNER}`,
    'an unknown encoding': `${post('transfer-encoding: xchunked')}0\r\n\r\n${INNER}`,
    'chunks that are not last': `${post('transfer-encoding: chunked, identity')}0\r\n\r\n${INNER}`,
    'two encodings': `${post(chunked, 'transfer-encoding: identity')}0\r\n\r\n${INNER}`,
    'a space before the colon': `${post('transfer-encoding : chunked')}0\r\n\r\n${INNER}`,
    'a line break in a chunk extension': `${post(chunked)}2;a\nb\r\n{}\r\n0\r\n\r\n${INNER}`,
    'a chunk size that is not a number': `${post(chunked)}0x2\r\n{}\r\n0\r\n\r\n${INNER}`,
    'lines without a carriage return': `GET /api/v1/me HTTP/1.1\nhost: x\n${authorization}\n\n`,
    'a zero byte in a header': get('host: x', authorization, 'x: a\0b'),
    'two hosts': get('host: x', 'host: y', authorization),
    'an upgrade to HTTP/2': get('host: x', 'connection: upgrade', 'upgrade: h2c').replace(
      'upgrade: h2c',
      'upgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__',
    ),
  }
}

/** Returns everything that the server sends until it closes the connection, at most for some seconds. */
function answerTo(url: string, request: string): Promise<string> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    let text = ''
    socket.setEncoding('latin1').setTimeout(ANSWER_MS, () => socket.destroy())
    socket.on('data', (chunk: string) => (text += chunk))
    // A reset is a rejection, too. `close` follows.
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(text))
    socket.write(request, 'latin1')
  })
}

const statusesIn = (text: string): readonly number[] =>
  [...text.matchAll(/^HTTP\/1\.\d (\d{3})/gm)].map(([, status]) => Number(status))

/** Two clients behind one connection of a proxy: the second one gets its own response, or none. */
async function staysTheSame({ target, tries }: Pick<Scene, 'target' | 'tries'>): Promise<void> {
  const { authorization = '' } = target.as.root.credentials
  const first = `POST /api/v1/dead-letters/discard HTTP/1.1\r\nhost: x\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\ncontent-length: 3\r\n\r\n{}x`
  const second = 'GET /livez HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n'
  const statuses = statusesIn(await answerTo(target.server.url, first + second))
  const [one, two, ...others] = statuses
  // The server may close the connection after the first one.
  const isExpected = others.length === 0 && !isAccepted(one) && (two === undefined || two === 200)
  tries.note(`two requests on one connection returned ${statuses.join(', ')}`, !isExpected)
}
