/** Writes more than allowed, makes some room, and writes again. A separate process with a limit. */
import { truncateSync } from 'node:fs'
import { file } from '../src/index.ts'
import { event, never, refusal } from './world.ts'

const path = process.argv[2] ?? ''
const sink = file({ path })
const large = event({ bytes: Buffer.alloc(10_000, 'x'), contentType: 'text/plain' })
const error: NodeJS.ErrnoException = await refusal(sink.send([large], { signal: never }))
process.stdout.write(`refused: ${error.code}\n`)
truncateSync(path, 4_000)
await sink.send([event({ id: 'small' })], { signal: never })
await sink.close()
