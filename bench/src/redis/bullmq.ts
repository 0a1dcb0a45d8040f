import { Queue, Worker } from 'bullmq'
import { BODY, type Contender, IN_FLIGHT, type Stage } from './contender.ts'

/** A worker of BullMQ with the same number of jobs in flight. It removes completed jobs. */
export async function bullmq({ name, client, handler }: Stage): Promise<Contender> {
  const queue = new Queue(name, { connection: client })
  const worker = new Worker(name, handler, {
    connection: client,
    concurrency: IN_FLIGHT,
    autorun: false,
    removeOnComplete: { count: 0 },
  })
  // BullMQ reports a failed job to this listener, too.
  worker.on('error', () => undefined)
  await worker.pause()
  void worker.run()
  const data: unknown = JSON.parse(BODY.toString())
  return {
    async fill(count) {
      await queue.clean(0, 0, 'failed')
      for (let done = 0; done < count; done += 1_000) {
        const some = Math.min(1_000, count - done)
        await queue.addBulk(Array.from({ length: some }, () => ({ name: 'bench', data })))
      }
    },
    start: () => worker.resume(),
    stop: () => worker.pause(),
    async close() {
      await worker.close()
      await queue.obliterate({ force: true })
      await queue.close()
    },
    async look() {
      const {
        wait = 0,
        active = 0,
        failed = 0,
      } = await queue.getJobCounts('wait', 'active', 'failed')
      return { waiting: wait + active, dead: failed }
    },
  }
}
