export type { AttemptContext } from './attempt.ts'
export { type Capabilities, missingCapabilities } from './capabilities.ts'
export { type Clock, systemClock } from './clock.ts'
export { readConfirmation, writeConfirmation } from './confirmation.ts'
export {
  type Consumer,
  type ConsumeOptions,
  consume,
  type Handler,
  type StopOptions,
} from './consume.ts'
export { Dependency, dependency } from './dependency.ts'
export { createEmitter, type Emitter } from './emit/emitter.ts'
export {
  type EventInput,
  SEVERITIES,
  SEVERITY_HEADER,
  type Schemas,
  type Severity,
} from './emit/event.ts'
export type {
  AutoReplayOptions,
  CleanupOptions,
  CloseOptions,
  EmitterOptions,
  QueueOptions,
  RateLimitOptions,
  SinkOptions,
  SinkPolicy,
} from './emit/options.ts'
export type {
  DropReason,
  EmitResult,
  EmitterStats,
  FailedResult,
  JobStats,
  SinkResult,
  SinkStats,
} from './emit/result.ts'
export {
  failing,
  nonFailing,
  nonFailingJob,
  nonFailingProcessor,
  type ScopeOptions,
} from './emit/scope.ts'
export {
  EVENT_CHANNEL,
  onEvent,
  type PauseReason,
  publish as publishEvent,
  type RedriveEvent,
} from './events.ts'
export type { LoopStats } from './loop.ts'
export { type Decode, decodeByContentType, type Message } from './message.ts'
export {
  type Awaitable,
  type DeadLetterSource,
  type DeadLetterStore,
  type ConfirmationBatch,
  type DrainedBatch,
  type DrainedDeadLetter,
  type Enactment,
  type Inbox,
  type InboxAnswer,
  type InboxAttempt,
  type InboxEntry,
  type ListQuery,
  LOST,
  type OutboundEvent,
  type Place,
  placed,
  type Receiver,
  type ReplayAnswer,
  type ReplayConfirmation,
  type ReplayMessage,
  type ReplayQuery,
  type SendAgain,
  SETTLED,
  type Sink,
  type StoredDeadLetter,
  type StoredReason,
  type StoreFilter,
  type StorePage,
  type StoreStats,
  type Transport,
  type TransportNeeds,
} from './ports.ts'
export { relay } from './relay.ts'
export { readStored, writeStored } from './stored.ts'
export { withTimeout } from './timeout.ts'
