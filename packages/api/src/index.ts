export { ACTIONS, type Action, ROLES, type Role } from './words.ts'
export {
  type Answered,
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
  type PlainOperation,
  type StreamOperation,
} from './client.ts'
export type {
  AuditEntry,
  DeadLetter,
  DeadLetterDetail,
  Group,
  Run,
} from './models.ts'
export {
  ApiError,
  type Problem,
  type ProblemCode,
  PROBLEM_TYPE,
  PROBLEMS,
  problem,
} from './problem.ts'
export { fromQueryString, toQueryString } from './query-string.ts'
export {
  type Answer,
  type Input,
  isMutation,
  type Operation,
  type Route,
  type Routes,
  ROUTES,
} from './routes.ts'
