export type { AttemptContext } from './attempt.ts'
export type { Awaitable } from './awaitable.ts'
export type { Capabilities } from './capabilities.ts'
export { type Clock, systemClock, type TimerOptions } from './clock.ts'
export { parseConfirmation, serializeConfirmation } from './confirmation.ts'
export {
  type Consumer,
  consume,
  type Handler,
  type StopOptions,
} from './consume.ts'
export {
  type ConsumerSet,
  type ConsumerSetHealth,
  consumerSet,
  type StartConsumer,
} from './consumer-set.ts'
export type { SignFailure } from './own-signature.ts'
export type { ConsumeOptions } from './consume-options.ts'
export type { ConsumerStats } from './consumer-stats.ts'
export { Dependency, dependency } from './dependency.ts'
export { createEmitter, type Emitter, type EventData } from './emit/emitter.ts'
export {
  type EventInput,
  SEVERITIES,
  SEVERITY_HEADER,
  type Schemas,
  type Severity,
} from './emit/event.ts'
export { flushOnExit, type FlushOnExitOptions } from './emit/flush-on-exit.ts'
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
export { storeSource, type StoreSourceOptions } from './store-source.ts'
export {
  type EventNames,
  onEvent,
  type HungReason,
  type PauseReason,
  publish as publishEvent,
  type RedriveEvent,
} from './events.ts'
export { type Decode, decodeByContentType, type Message } from './message.ts'
export type {
  ConfirmationBatch,
  DeadLetterSource,
  DrainedQueue,
  DrainedBatch,
  DrainedDeadLetter,
  DrainProblem,
  ReplayConfirmation,
  ReplayMessage,
} from './ports/dead-letter-source.ts'
export type {
  DeadLetterStore,
  ListQuery,
  ReplayQuery,
  ReplayResult,
  SendAgain,
  StoredDeadLetter,
  StoredReason,
  StoreFilter,
  StorePage,
  StoreStats,
} from './ports/dead-letter-store.ts'
export type { Inbox, InboxAttempt, InboxEntry, InboxResult } from './ports/inbox.ts'
export type { CheckedSink, OutboundEvent, Sink } from './ports/sink.ts'
export {
  type Destination,
  type Enactment,
  LOST,
  movedTo,
  type Receiver,
  SETTLED,
  type Transport,
  type TransportGroup,
  type TransportNeeds,
} from './ports/transport.ts'
export type { DependencyCounts, LastFailure } from './dependency-counts.ts'
export type { BreakerHealth, ConsumerHealth, UnprovenMessage } from './health/consumer.ts'
export { type HealthHandler, healthHandler } from './health/handler.ts'
export type { HealthOptions } from './health/options.ts'
export type { CheckedConsumers, ConsumerReport, HealthReport } from './health/routes.ts'
export type { Logger } from './log/logger.ts'
export { relay } from './relay.ts'
export { parseStoredDeadLetter, serializeStoredDeadLetter } from './stored-dead-letter.ts'
