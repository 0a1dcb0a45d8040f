import { killByMessage } from '../../harness/crash-loop.ts'
import type { PostgresScenario } from '../world.ts'

export const crashLoop: PostgresScenario = {
  name: 'crash-loop',
  story:
    'one message among many kills every process that runs it; only this message is quarantined',
  service: 'postgres',
  messages: { quick: 300, full: 1_000 },
  play: (world) => killByMessage(world, 30),
}
