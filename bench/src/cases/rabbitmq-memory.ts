// Runs alone in its process, because memory left by other benchmarks would be measured too.
import type { BenchCase } from '../comparison.ts'
import { memory } from '../rabbitmq/memory.ts'

export const bench: BenchCase = {
  summary: 'Memory of a consumer on RabbitMQ under steady failures',
  comparisons: [],
  gauges: [memory],
}
