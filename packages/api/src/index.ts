export {
  type OutputWithEtag,
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
  type PlainOperation,
  type StreamOperation,
} from './client.ts'
export type { AuditEntry } from './models/audit.ts'
export type { DeadLetter, DeadLetterDetail } from './models/dead-letters.ts'
export type { Group } from './models/groups.ts'
export type { Run } from './models/replays.ts'
export { ApiError, type Problem, type ProblemCode, PROBLEMS } from './problem.ts'
export type { Output, Input, InputPart, InputQuery, Operation, Routes } from './routes.ts'
