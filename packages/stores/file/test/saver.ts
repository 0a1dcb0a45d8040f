// node --conditions=@redrive/source saver.ts DIRECTORY PREFIX [FSYNC]
// Saves dead letters as fast as it can until it is killed, and prints the id of each acknowledged one.
import { createHash } from 'node:crypto'
import { writeSync } from 'node:fs'
import { fileStore } from '../src/index.ts'
import { deadLetter } from './place.ts'
import type { StoredDeadLetter } from '@redrive/runtime'

const STDOUT = 1
/** Several saves wait for the same fsync, and a kill finds some of them half written. */
const AT_ONCE = 20
/** Up to 4,096 bytes: several fit into a page of the disk, and some cross its end. */
const LENGTHS = 4_096

/** Creates the dead letter with that id. Its whole content follows from the id. */
export function savedUnder(id: string): StoredDeadLetter {
  const seed = createHash('sha256').update(id).digest()
  const bytes = Buffer.alloc(seed.readUInt32LE(0) % LENGTHS, seed)
  const isText = (seed[4] ?? 0) % 2 === 0
  const body = isText ? Buffer.from(`${bytes.toString('base64')}\n\u2028{"id":1}\n`) : bytes
  const plain = deadLetter(id, { savedAt: seed.readUInt32LE(8) })
  return { ...plain, event: { ...plain.event, bytes: body } }
}

async function saveForEver(directory: string, prefix: string, fsync: string): Promise<void> {
  const store = fileStore({ directory, fsync: fsync as 'batch', maxFileBytes: 2 ** 18 })
  let number = 0
  const save = async () => {
    for (;;) {
      const id = `${prefix}-${number++}`
      await store.save(savedUnder(id))
      writeSync(STDOUT, `${id}\n`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, save))
}

if (import.meta.main) {
  const [directory = '', prefix = '', fsync = 'batch'] = process.argv.slice(2)
  await saveForEver(directory, prefix, fsync)
}
