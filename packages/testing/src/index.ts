export {
  noDeadLetters,
  type RecordingDeadLetters,
  type RecordingDeadLettersOptions,
  recordingDeadLetters,
} from './dead-letters.ts'
export {
  type ExerciseOptions,
  exerciseTransport,
  type SkippedScenario,
  type TestRunner,
} from './exercise/exercise.ts'
export type { SentMessage, TransportFault, TransportWorld } from './exercise/world.ts'
export { FakeClock, type FakeClockOptions } from './fake-clock.ts'
export { type MemoryInbox, type MemoryTransaction, memoryInbox } from './memory-inbox.ts'
export { type MemoryWorld, type MemoryWorldOptions, memoryWorld } from './memory-world.ts'
export { type SeededRandom, seededRandom } from './seeded-random.ts'
