import { memoryOf } from '../../harness/process.ts'
import type { Scenario } from '../../harness/scenario.ts'
import { attack, type Scene } from './attack.ts'
import { staysLive } from './live.ts'

const MIB = 1_048_576
const BODY_BYTES = 40 * MIB
const AT_ONCE = 4
/** 256 MiB: less than the bodies and texts of all responses together, and more than the garbage of their pieces. */
const GROWTH_MAX = 256 * MIB
/** 20 ms: a body in memory stays there for hundreds of milliseconds. */
const SAMPLE_MS = 20

/** A large message must not use up the memory of the server when several people read it at the same time. */
export const DOWNLOADS: Scenario = attack(
  'downloads',
  `${AT_ONCE} downloads of a message of ${BODY_BYTES / MIB} MiB at the same time`,
  async (scene) => {
    const { target, tries } = scene
    const large = { body: 'a'.repeat(BODY_BYTES), contentType: 'text/plain' }
    const [id = ''] = await target.queues.kill(target.pool, 'orders', [large])
    const before = memoryOf(target.server).now
    let peak = before
    const timer = setInterval(() => {
      peak = Math.max(peak, memoryOf(target.server).now)
    }, SAMPLE_MS)
    try {
      await staysLive(scene, async () => {
        const sizes = await Promise.all(Array.from({ length: AT_ONCE }, () => download(scene, id)))
        // The body twice: as base64 and as text.
        const isShort = sizes.some((size) => size < 2 * BODY_BYTES)
        if (isShort) throw new Error(`A response was too short: ${sizes.join(', ')} bytes.`)
      })
    } finally {
      clearInterval(timer)
    }
    const grown = peak - before
    tries.note(`the memory grew by ${Math.round(grown / MIB)} MiB`, grown > GROWTH_MAX)
  },
)

/** Returns the size of the response, without keeping it. */
async function download({ target }: Scene, id: string): Promise<number> {
  const url = `${target.server.url}/api/v1/dead-letters/${id}/payload?reason=test`
  const response = await fetch(url, { headers: target.as.root.credentials })
  let size = 0
  const body: AsyncIterable<Uint8Array> | null = response.body
  if (body !== null) for await (const chunk of body) size += chunk.length
  return size
}
