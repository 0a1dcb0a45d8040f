import { connect, type Socket } from 'node:net'
import type { Drill } from '../../drill.ts'
import { becomesTrue } from '../../wait.ts'
import { attack, type Scene } from './attack.ts'
import { memoryOf } from './bombs.ts'
import { staysLive } from './live.ts'

const CONNECTIONS = 500
/** Half a second between two bytes: never silent, never done. */
const BYTE_MS = 500
/** The half minute that a request may take to arrive, and as long again until it is noticed. */
const CUT_MS = 65_000
const GROWTH_MAX = 128 * 1_048_576

/** Requests that never arrive are cut off, and nobody else waits for them. */
export const SLOW: Drill = attack(
  'slow',
  `${CONNECTIONS} requests that arrive byte by byte, for ever`,
  async (scene) => {
    const { target, tries } = scene
    const before = memoryOf(target)
    await staysLive(scene, () => drip(scene))
    const grown = memoryOf(target) - before
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
  tries.note(`${left.length} of ${CONNECTIONS} are still there`, left.length > 0)
}

/** One half stops in its headers, the other in its body. */
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
