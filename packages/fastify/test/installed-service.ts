// A program of a user: installed.proof.ts installs the packed packages and runs it.
import { redrive } from '@redrive/fastify'
import { MemoryBroker, memory, send } from '@redrive/memory'
import { consume } from '@redrive/runtime'
import fastify from 'fastify'

const broker = new MemoryBroker()
const handled: string[] = []
const app = fastify()

app.get('/handled', async () => handled)
await app.register(redrive, {
  consumers: {
    orders: () => consume(memory({ broker, queue: 'orders' }), ({ id }) => handled.push(id)),
  },
})
const base = await app.listen({ port: 0, host: '127.0.0.1' })
send(broker, 'orders', {}, { id: 'o-1' })
const textOf = async (path: string) => (await fetch(base + path)).text()
while ((await textOf('/handled')) !== '["o-1"]') await new Promise((done) => setTimeout(done, 10))
console.log(await textOf('/healthz/ready'))
await app.close()
console.log(app.redrive.health().status)
