export { type SeededRandom, seededRandom } from '@redrive/core'
export {
  noDeadLetters,
  type RecordingDeadLetters,
  type RecordingDeadLettersOptions,
  recordingDeadLetters,
} from './dead-letters.ts'
export {
  type ExerciseOptions,
  exerciseTransport,
  RESTART_SCENARIO,
  STRESS_SCENARIO,
} from './exercise/exercise.ts'
export type { RunnableTest, SkippedScenario, TestRunner } from './exercise/runner.ts'
export type {
  ConsumerGroup,
  SentMessage,
  TransportFault,
  TransportFixture,
  WorldAbility,
} from './exercise/world.ts'
export { type ExerciseStoreOptions, exerciseStore } from './exercise-store/exercise.ts'
export type { StoreFixture } from './exercise-store/world.ts'
export { FakeClock, type FakeClockOptions } from './fake-clock.ts'
export { type MemoryInbox, type MemoryTransaction, memoryInbox } from './memory-inbox.ts'
export { type RecordingSink, type RecordingSinkOptions, recordingSink } from './recording-sink.ts'
export { type Accepted, until, type UntilOptions, type WaitOptions, within } from './until.ts'
