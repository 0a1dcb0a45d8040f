// One record in a large partition always fails: Redrive, kafkajs and NestJS with the same input.
import type { BenchCase } from '../comparison.ts'
import { poison } from '../kafka/poison.ts'

export const bench: BenchCase = {
  summary: 'One poison record in one partition, consumers as their documentation shows them',
  comparisons: [],
  gauges: [poison],
}
