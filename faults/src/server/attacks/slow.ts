import { connect, type Socket } from 'node:net'
import { memoryOf } from '../../harness/process.ts'
import type { Scenario } from '../../harness/scenario.ts'
import { becomesTrue } from '../../harness/wait.ts'
import { attack, type Scene } from './attack.ts'
import { staysLive } from './live.ts'

const CONNECTIONS = 500
/** Half a second between two bytes: the connection is never idle and never done. */
const BYTE_MS = 500
/** 30 s is the limit for a request to arrive, plus the same time until the server checks it. */
const CUT_MS = 65_000
const GROWTH_MAX = 128 * 1_048_576

/** Requests that never arrive completely are cut off. Other callers do not wait for them. */
export const SLOW: Scenario = attack(
  'slow',
  `${CONNECTIONS} requests that arrive byte by byte, without an end`,
  async (scene) => {
    const { target, tries } = scene
    const before = memoryOf(target.server).now
    await staysLive(scene, () => drip(scene))
    const grown = memoryOf(target.server).now - before
    tries.note(`the memory grew by ${Math.round(grown / 1_048_576)} MiB`, grown > GROWTH_MAX)
  },
)

async function drip({ target, tries }: Scene): Promise<void> {
  const sockets = Array.from({ length: CONNECTIONS }, (_, at) =>
    opened(target.server.url, at, target.as.root.credentials),
  )
  const dripping = setInterval(() => {
    for (const socket of sockets) if (socket.writable) socket.write('x')
  }, BYTE_MS)
  const areCut = () => sockets.every(({ destroyed }) => destroyed)
  await becomesTrue(areCut, { withinMs: CUT_MS })
  clearInterval(dripping)
  const left = sockets.filter(({ destroyed }) => !destroyed)
  for (const socket of left) socket.destroy()
  tries.note(`${left.length} of ${CONNECTIONS} are still connected`, left.length > 0)
}

/** Opens a request. One half stops in the headers, the other in the body. */
function opened(url: string, at: number, credentials: Readonly<Record<string, string>>): Socket {
  const { hostname, port, host } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket
    .on('error', () => socket.destroy())
    .on('end', () => socket.destroy())
    .resume()
  const body = `authorization: ${credentials['authorization']}\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\nidempotency-key: 1\r\n\r\n{`
  socket.write(
    `POST /api/v1/dead-letters/discard HTTP/1.1\r\nhost: ${host}\r\n${at % 2 === 0 ? 'x-slow: ' : body}`,
  )
  return socket
}
