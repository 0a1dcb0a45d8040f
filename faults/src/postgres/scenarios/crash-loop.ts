import { CRASH_LOOP, killByMessage } from '../../harness/crash-loop.ts'
import type { PostgresScenario } from '../world.ts'

export const crashLoop: PostgresScenario = {
  ...CRASH_LOOP,
  service: 'postgres',
  messages: { quick: 300, full: 1_000 },
  play: (world) => killByMessage(world, 30),
}
