import { z } from 'zod'
import type { Action } from './words.ts'
import * as answers from './models.ts'
import * as requests from './requests.ts'

/** One operation of the API. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With `{name}` for each of `params`. */
  readonly path: string
  readonly summary: string
  /**
   * What the caller must be allowed to do, with some source at least: which source is decided where the
   * data is. `signed_in`: anyone who is known.
   */
  readonly needs: Action | 'signed_in'
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  /** Status of the answer. Default 200. */
  readonly status?: 200 | 201 | 202 | 204
  readonly answer: z.ZodType
  /**
   * It changes what someone has looked at: `If-Match` with the ETag of that is needed. `'edit'`: only when
   * the body has `change.edit`, with the ETag of the dead letter.
   */
  readonly ifMatch?: true | 'edit'
  /** The answer goes on: server-sent events, or one JSON document in each line. */
  readonly stream?: 'events' | 'lines'
}

const NOTHING = z.undefined()

// biome-ignore format: one row per route, to be read as a table
export const ROUTES = {
  me: { method: 'GET', path: '/api/v1/me', needs: 'signed_in', summary: 'Who asks, and what they may do', answer: answers.me },
  overview: { method: 'GET', path: '/api/v1/overview', needs: 'view', summary: 'How much waits, where and how long, and the alerts that hold', answer: answers.overview },
  listSources: { method: 'GET', path: '/api/v1/sources', needs: 'view', summary: 'Sources and what waits in them', answer: answers.sources },
  keepSchema: { method: 'PUT', path: '/api/v1/sources/{source}/schema', needs: 'configure', summary: 'Say what the consumers of a source expect', params: requests.bySource, body: requests.schemaOf, status: 204, answer: NOTHING },
  allowAutoReplay: { method: 'PUT', path: '/api/v1/sources/{source}/auto-replay', needs: 'configure', summary: 'Allow replays of transient failures without a person, or forbid them', params: requests.bySource, body: requests.autoReplay, status: 204, answer: NOTHING },

  listGroups: { method: 'GET', path: '/api/v1/groups', needs: 'view', summary: 'Failure groups', query: requests.groupQuery, answer: answers.groupPage },
  getGroup: { method: 'GET', path: '/api/v1/groups/{id}', needs: 'view', summary: 'One failure group', params: requests.byId, answer: answers.group },
  explainGroup: { method: 'GET', path: '/api/v1/groups/{id}/why', needs: 'view', summary: 'Why these dead letters are one group', params: requests.byId, answer: answers.why },
  changeGroup: { method: 'PATCH', path: '/api/v1/groups/{id}', needs: 'triage', summary: 'Mute, resolve, reopen or assign a group', params: requests.byId, body: requests.groupChange, ifMatch: true, answer: answers.group },
  listGroupComments: { method: 'GET', path: '/api/v1/groups/{id}/comments', needs: 'view', summary: 'What people said about a group', params: requests.byId, answer: answers.comments },
  commentGroup: { method: 'POST', path: '/api/v1/groups/{id}/comments', needs: 'triage', summary: 'Say something about a group', params: requests.byId, body: requests.newComment, status: 204, answer: NOTHING },
  trend: { method: 'GET', path: '/api/v1/trend', needs: 'view', summary: 'How many in each minute or hour', query: requests.trendQuery, answer: answers.trend },

  listDeadLetters: { method: 'GET', path: '/api/v1/dead-letters', needs: 'view', summary: 'Dead letters, newest failure first', query: requests.deadLetterQuery, answer: answers.deadLetterPage },
  exportDeadLetters: { method: 'GET', path: '/api/v1/dead-letters/export', needs: 'export', summary: 'All that fit, one JSON document in each line', query: requests.deadLetterQuery, stream: 'lines', answer: answers.deadLetter },
  getDeadLetter: { method: 'GET', path: '/api/v1/dead-letters/{id}', needs: 'view', summary: 'One dead letter', params: requests.byId, answer: answers.deadLetterDetail },
  getPayload: { method: 'GET', path: '/api/v1/dead-letters/{id}/payload', needs: 'unmask', summary: 'Body and headers as they came', params: requests.byId, answer: answers.payload },
  listDeadLetterReplays: { method: 'GET', path: '/api/v1/dead-letters/{id}/replays', needs: 'view', summary: 'Everything that was ever done with one dead letter', params: requests.byId, answer: answers.items },
  listDeadLetterComments: { method: 'GET', path: '/api/v1/dead-letters/{id}/comments', needs: 'view', summary: 'What people said about a dead letter', params: requests.byId, answer: answers.comments },
  commentDeadLetter: { method: 'POST', path: '/api/v1/dead-letters/{id}/comments', needs: 'triage', summary: 'Say something about a dead letter', params: requests.byId, body: requests.newComment, status: 204, answer: NOTHING },
  discard: { method: 'POST', path: '/api/v1/dead-letters/discard', needs: 'discard', summary: 'Nobody has to deal with these any more', body: requests.selection, answer: answers.settled },
  restore: { method: 'POST', path: '/api/v1/dead-letters/restore', needs: 'discard', summary: 'Undo a discard', body: requests.selection, answer: answers.settled },
  decide: { method: 'POST', path: '/api/v1/dead-letters/decide', needs: 'replay', summary: 'Say what became of unknown outcomes', body: requests.decision, answer: answers.decided },

  planReplay: { method: 'POST', path: '/api/v1/replays', needs: 'replay', summary: 'Freeze a selection and see what would be replayed', body: requests.planRequest, ifMatch: 'edit', status: 201, answer: answers.run },
  listReplays: { method: 'GET', path: '/api/v1/replays', needs: 'view', summary: 'Runs, newest first', query: requests.runQuery, answer: answers.runPage },
  getReplay: { method: 'GET', path: '/api/v1/replays/{id}', needs: 'view', summary: 'One run and how far it is', params: requests.byId, answer: answers.run },
  watchReplay: { method: 'GET', path: '/api/v1/replays/{id}/events', needs: 'view', summary: 'The run whenever it changes, until it is over', params: requests.byId, stream: 'events', answer: answers.run },
  getReplayChange: { method: 'GET', path: '/api/v1/replays/{id}/change', needs: 'payload', summary: 'What a run changes on the way out, for who approves or edits', params: requests.byId, answer: answers.runChange },
  listReplayItems: { method: 'GET', path: '/api/v1/replays/{id}/items', needs: 'view', summary: 'What became of each dead letter of a run', params: requests.byId, query: requests.itemQuery, answer: answers.items },
  approveReplay: { method: 'POST', path: '/api/v1/replays/{id}/approve', needs: 'approve', summary: 'Let a run go out', params: requests.byId, body: requests.approval, status: 202, answer: answers.run },
  pauseReplay: { method: 'POST', path: '/api/v1/replays/{id}/pause', needs: 'replay', summary: 'Nothing more goes out until it is resumed', params: requests.byId, answer: answers.run },
  resumeReplay: { method: 'POST', path: '/api/v1/replays/{id}/resume', needs: 'replay', summary: 'Go on after a pause', params: requests.byId, status: 202, answer: answers.run },
  cancelReplay: { method: 'POST', path: '/api/v1/replays/{id}/cancel', needs: 'replay', summary: 'What is not out never goes out', params: requests.byId, answer: answers.run },
  acknowledgeRestore: { method: 'POST', path: '/api/v1/replays/acknowledge-restore', needs: 'configure', summary: 'Let replays go on after the catalog was restored', status: 204, answer: NOTHING },

  listTokens: { method: 'GET', path: '/api/v1/tokens', needs: 'signed_in', summary: 'Tokens of who asks', answer: answers.tokens },
  createToken: { method: 'POST', path: '/api/v1/tokens', needs: 'signed_in', summary: 'A token that may do a part of what who asks may do', body: requests.tokenRequest, status: 201, answer: answers.newToken },
  revokeToken: { method: 'DELETE', path: '/api/v1/tokens/{id}', needs: 'signed_in', summary: 'Make a token worthless', params: requests.byId, status: 204, answer: NOTHING },
  listAudit: { method: 'GET', path: '/api/v1/audit', needs: 'configure', summary: 'Who did, saw and tried what, newest first', query: requests.auditQuery, answer: answers.auditPage },
} as const satisfies Readonly<Record<string, Route>>

export type Routes = typeof ROUTES
export type Operation = keyof Routes

type Part<R, K extends string> = R extends { readonly [P in K]: infer S extends z.ZodType }
  ? { readonly [P in K]: z.output<S> }
  : unknown
/** Absent when nothing in it is needed. */
type QueryPart<R> = R extends { readonly query: infer S extends z.ZodType }
  ? Record<never, never> extends z.output<S>
    ? { readonly query?: z.output<S> }
    : { readonly query: z.output<S> }
  : unknown

/** What an operation is asked with. */
export type Input<K extends Operation> = Part<Routes[K], 'params'> &
  QueryPart<Routes[K]> &
  Part<Routes[K], 'body'> &
  (Routes[K] extends { readonly ifMatch: true } ? { readonly ifMatch: string } : unknown) &
  (Routes[K] extends { readonly ifMatch: 'edit' } ? { readonly ifMatch?: string } : unknown)

export type Answer<K extends Operation> = z.output<Routes[K]['answer']>

/** A name of the table. */
export const isMutation = (route: Route): boolean => route.method !== 'GET'
