import { POLICY } from '../../harness/consumer-options.ts'
import { ready } from '../../harness/fleet.ts'
import { declareSource } from '../topology.ts'
import type { RabbitScenario } from '../world.ts'

const CONSUMERS = 3
/** 24 chances for processes to declare concurrently, which happens in some of them only. */
const QUEUES = 24

export const declareTogether: RabbitScenario = {
  name: 'declare-together',
  story: 'processes need the same new delay queue at the same time; its messages come back',
  service: 'rabbitmq-cluster',
  messages: { quick: 12, full: 60 },
  async play(world) {
    const queues = Array.from({ length: QUEUES }, (_, index) => `${world.run}-${index}`)
    await declareSource(world.broker, ...queues)
    const backoff = { kind: 'fixed', delay: '250ms', jitter: 'none' } as const
    const policy = { ...POLICY, retry: { ...POLICY.retry, backoff } }
    const fleet = world.fleet({ queues, policy, workMs: 0 })
    for (let count = 0; count < CONSUMERS; count++) fleet.start()
    await ready(fleet, CONSUMERS)
    const numbers = Array.from({ length: world.messages }, (_, number) => number)
    const sent = queues.map((queue) =>
      world.send(
        queue,
        numbers.map((number) => ({ id: `${queue}/${number}`, kind: 'flaky' })),
      ),
    )
    await Promise.all(sent)
    world.heal()
  },
}
