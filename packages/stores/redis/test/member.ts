/** A separate process that saves, then replays with the others, and reports every send. */
import { once } from 'node:events'
import { createClient } from '@redis/client'
import { redisStore } from '../src/index.ts'
import { deadLetter, START } from './samples.ts'

const [url = '', prefix = '', name = '', count = '0'] = process.argv.slice(2)
const client = await createClient({ url }).connect()
const store = redisStore({ client, prefix, retention: '1h' })

for (let i = 0; i < Number(count); i++) {
  await store.save(deadLetter(`${name} ${i}`, { savedAt: START + i }))
}
process.send?.('saved')
await once(process, 'message')
const sent: string[] = []
const answer = await store.replayBatch({ limit: 10_000, concurrency: 5 }, async ({ id }) => {
  sent.push(id)
})
process.send?.({ sent, answer })
process.disconnect()
client.destroy()
