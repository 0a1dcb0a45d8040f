import { z } from 'zod'
import type { Action } from './enums.ts'
import * as access from './models/access.ts'
import * as audit from './models/audit.ts'
import * as comments from './models/comments.ts'
import * as deadLetters from './models/dead-letters.ts'
import * as fingerprints from './models/fingerprints.ts'
import * as groups from './models/groups.ts'
import * as masks from './models/masks.ts'
import * as overview from './models/overview.ts'
import * as replays from './models/replays.ts'
import * as setAside from './models/set-aside.ts'
import * as requests from './requests.ts'

/** One operation of the API. */
export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** Contains `{name}` for each of `params`. */
  readonly path: string
  readonly summary: string
  /**
   * The permission that the caller needs on at least one source; the operation checks it on the source of the
   * data. `signed_in`: every authenticated caller.
   */
  readonly needs: Action | 'signed_in'
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly body?: z.ZodType
  /** HTTP status of a successful response. Default 200. */
  readonly status?: 200 | 201 | 202 | 204
  readonly output: z.ZodType
  /**
   * Requires the header `If-Match` with the ETag of the resource to change. `'edit'`: only when the body has
   * `change.edit`, with the ETag of the dead letter.
   */
  readonly ifMatch?: true | 'edit'
  /** Streams the response: server-sent events, or one JSON document per line. */
  readonly stream?: 'events' | 'lines'
}

const NOTHING = z.undefined()

// biome-ignore format: one row per route, to be read as a table
export const ROUTES = {
  me: { method: 'GET', path: '/api/v1/me', needs: 'signed_in', summary: 'Get the current caller and permissions', output: access.me },
  overview: { method: 'GET', path: '/api/v1/overview', needs: 'view', summary: 'Get open counts, oldest ages and active alerts', output: overview.overview },
  listSources: { method: 'GET', path: '/api/v1/sources', needs: 'view', summary: 'List sources with their open dead letters', output: overview.sources },
  listExpired: { method: 'GET', path: '/api/v1/expired', needs: 'view', summary: 'Count expired dead letters per source, day and status', query: requests.expiredQuery, output: overview.expiredPage },
  setSchema: { method: 'PUT', path: '/api/v1/sources/{source}/schema', needs: 'configure', summary: 'Set the JSON Schema of a source', params: requests.bySource, body: requests.schemaOf, status: 204, output: NOTHING },
  setAutoReplay: { method: 'PUT', path: '/api/v1/sources/{source}/auto-replay', needs: 'configure', summary: 'Request, approve or disable automatic replay of transient failures', params: requests.bySource, body: requests.autoReplay, output: overview.autoReplayState },

  listGroups: { method: 'GET', path: '/api/v1/groups', needs: 'view', summary: 'List failure groups', query: requests.groupQuery, output: groups.groupPage },
  getGroup: { method: 'GET', path: '/api/v1/groups/{id}', needs: 'view', summary: 'Get a failure group', params: requests.byId, output: groups.group },
  explainGroup: { method: 'GET', path: '/api/v1/groups/{id}/explanation', needs: 'view', summary: 'Explain why dead letters share a group', params: requests.byId, output: groups.explanation },
  changeGroup: { method: 'PATCH', path: '/api/v1/groups/{id}', needs: 'triage', summary: 'Change the state or the owner of a group', params: requests.byId, body: requests.groupChange, ifMatch: true, output: groups.group },
  mergeGroups: { method: 'POST', path: '/api/v1/groups/{id}/merge', needs: 'discard', summary: 'Merge other groups into this group', params: requests.byId, body: requests.groupMerge, output: groups.group },
  unmergeGroup: { method: 'POST', path: '/api/v1/groups/{id}/unmerge', needs: 'discard', summary: 'Separate a merged group again', params: requests.byId, body: requests.groupUnmerge, output: groups.group },
  splitGroup: { method: 'POST', path: '/api/v1/groups/{id}/split', needs: 'discard', summary: 'Split matching dead letters off into a new group', params: requests.byId, body: requests.groupSplit, output: groups.splitGroup },
  listMergedGroups: { method: 'GET', path: '/api/v1/groups/{id}/merged', needs: 'view', summary: 'List the groups that were merged into a group', params: requests.byId, output: groups.mergedGroups },
  listFingerprints: { method: 'GET', path: '/api/v1/fingerprints', needs: 'view', summary: 'List the fingerprint rules of the config', output: fingerprints.fingerprintRules },
  previewFingerprints: { method: 'POST', path: '/api/v1/fingerprints/preview', needs: 'view', summary: 'Count the open dead letters that fingerprint rules would move', body: requests.fingerprintPreview, output: fingerprints.fingerprintPreview },
  applyFingerprints: { method: 'POST', path: '/api/v1/fingerprints/apply', needs: 'discard', summary: 'Move open dead letters to the groups of the fingerprint rules', body: requests.fingerprintApply, output: fingerprints.fingerprintsApplied },
  listMasks: { method: 'GET', path: '/api/v1/masks', needs: 'view', summary: 'List the masks and detectors of the config', output: masks.masks },
  listGroupComments: { method: 'GET', path: '/api/v1/groups/{id}/comments', needs: 'view', summary: 'List comments of a group', params: requests.byId, output: comments.comments },
  commentGroup: { method: 'POST', path: '/api/v1/groups/{id}/comments', needs: 'triage', summary: 'Add a comment to a group', params: requests.byId, body: requests.newComment, status: 204, output: NOTHING },
  trend: { method: 'GET', path: '/api/v1/trend', needs: 'view', summary: 'Count dead letters per minute or hour', query: requests.trendQuery, output: overview.trend },

  listDeadLetters: { method: 'GET', path: '/api/v1/dead-letters', needs: 'view', summary: 'List dead letters, latest failure first', query: requests.deadLetterQuery, output: deadLetters.deadLetterPage },
  exportDeadLetters: { method: 'GET', path: '/api/v1/dead-letters/export', needs: 'export', summary: 'Export matching dead letters as JSON Lines', query: requests.deadLetterQuery, stream: 'lines', output: deadLetters.deadLetter },
  getDeadLetter: { method: 'GET', path: '/api/v1/dead-letters/{id}', needs: 'view', summary: 'Get a dead letter', params: requests.byId, output: deadLetters.deadLetterDetail },
  getPayload: { method: 'GET', path: '/api/v1/dead-letters/{id}/payload', needs: 'view_unmasked', summary: 'Get the unmasked payload', params: requests.byId, query: requests.payloadQuery, output: deadLetters.payload },
  listCycles: { method: 'GET', path: '/api/v1/dead-letters/{id}/cycles', needs: 'view', summary: 'List earlier cycles of a dead letter', params: requests.byId, output: deadLetters.cycles },
  listDeadLetterReplays: { method: 'GET', path: '/api/v1/dead-letters/{id}/replays', needs: 'view', summary: 'List all replays of a dead letter', params: requests.byId, output: replays.items },
  listDeadLetterComments: { method: 'GET', path: '/api/v1/dead-letters/{id}/comments', needs: 'view', summary: 'List comments of a dead letter', params: requests.byId, output: comments.comments },
  commentDeadLetter: { method: 'POST', path: '/api/v1/dead-letters/{id}/comments', needs: 'triage', summary: 'Add a comment to a dead letter', params: requests.byId, body: requests.newComment, status: 204, output: NOTHING },
  selectDeadLetters: { method: 'POST', path: '/api/v1/dead-letters/selections', needs: 'discard', summary: 'Freeze the dead letters to discard or restore', body: requests.selectionRequest, status: 201, output: deadLetters.frozenSelection },
  discard: { method: 'POST', path: '/api/v1/dead-letters/discard', needs: 'discard', summary: 'Discard dead letters', body: requests.selection, output: deadLetters.settled },
  restore: { method: 'POST', path: '/api/v1/dead-letters/restore', needs: 'discard', summary: 'Restore discarded dead letters', body: requests.selection, output: deadLetters.settled },
  setOutcomes: { method: 'POST', path: '/api/v1/dead-letters/outcomes', needs: 'replay', summary: 'Set the outcome of unconfirmed replays', body: requests.decision, output: deadLetters.outcomesSet },

  listSetAside: { method: 'GET', path: '/api/v1/set-aside', needs: 'view', summary: 'List messages that could not be catalogued, newest first', query: requests.setAsideQuery, output: setAside.setAsidePage },
  getSetAside: { method: 'GET', path: '/api/v1/set-aside/{id}', needs: 'view', summary: 'Get a set-aside message', params: requests.byId, output: setAside.setAsideMessage },
  getSetAsidePayload: { method: 'GET', path: '/api/v1/set-aside/{id}/payload', needs: 'view_unmasked', summary: 'Get body and headers of a set-aside message', params: requests.byId, query: requests.unmaskQuery, output: setAside.setAsidePayload },
  replaySetAside: { method: 'POST', path: '/api/v1/set-aside/replay', needs: 'replay', summary: 'Request a replay of set-aside messages', body: requests.setAsideReplay, output: setAside.setAsideChanged },
  approveSetAside: { method: 'POST', path: '/api/v1/set-aside/approve', needs: 'approve', summary: 'Approve the replay of set-aside messages', body: requests.setAsideApproval, output: setAside.setAsideChanged },
  discardSetAside: { method: 'POST', path: '/api/v1/set-aside/discard', needs: 'discard', summary: 'Discard set-aside messages', body: requests.setAsideSelection, output: setAside.setAsideChanged },
  reopenSetAside: { method: 'POST', path: '/api/v1/set-aside/reopen', needs: 'discard', summary: 'Reopen discarded set-aside messages or withdraw their replay', body: requests.setAsideSelection, output: setAside.setAsideChanged },

  planReplay: { method: 'POST', path: '/api/v1/replays', needs: 'replay', summary: 'Plan a replay run and preview its items', body: requests.planRequest, ifMatch: 'edit', status: 201, output: replays.run },
  listReplays: { method: 'GET', path: '/api/v1/replays', needs: 'view', summary: 'List replay runs, newest first', query: requests.runQuery, output: replays.runPage },
  getReplay: { method: 'GET', path: '/api/v1/replays/{id}', needs: 'view', summary: 'Get a replay run and its progress', params: requests.byId, output: replays.run },
  watchReplay: { method: 'GET', path: '/api/v1/replays/{id}/events', needs: 'view', summary: 'Stream progress of a replay run', params: requests.byId, stream: 'events', output: replays.run },
  getReplayChange: { method: 'GET', path: '/api/v1/replays/{id}/change', needs: 'view_payload', summary: 'Get the payload changes of a replay run', params: requests.byId, output: replays.runChange },
  listReplayItems: { method: 'GET', path: '/api/v1/replays/{id}/items', needs: 'view', summary: 'List the items of a replay run', params: requests.byId, query: requests.itemQuery, output: replays.items },
  approveReplay: { method: 'POST', path: '/api/v1/replays/{id}/approve', needs: 'approve', summary: 'Approve and start a replay run', params: requests.byId, body: requests.approval, status: 202, output: replays.run },
  pauseReplay: { method: 'POST', path: '/api/v1/replays/{id}/pause', needs: 'replay', summary: 'Pause a replay run', params: requests.byId, output: replays.run },
  resumeReplay: { method: 'POST', path: '/api/v1/replays/{id}/resume', needs: 'replay', summary: 'Resume a paused replay run', params: requests.byId, status: 202, output: replays.run },
  cancelReplay: { method: 'POST', path: '/api/v1/replays/{id}/cancel', needs: 'replay', summary: 'Cancel a replay run; unpublished items reopen', params: requests.byId, output: replays.run },
  acknowledgeRestore: { method: 'POST', path: '/api/v1/replays/acknowledge-restore', needs: 'configure', summary: 'Acknowledge a restored catalog and unfreeze replays', status: 204, output: NOTHING },

  listTokens: { method: 'GET', path: '/api/v1/tokens', needs: 'signed_in', summary: 'List API tokens of the caller, or of all users', query: requests.tokenQuery, output: access.tokens },
  createToken: { method: 'POST', path: '/api/v1/tokens', needs: 'signed_in', summary: "Create an API token with a subset of the caller's permissions", body: requests.tokenRequest, status: 201, output: access.newToken },
  revokeToken: { method: 'DELETE', path: '/api/v1/tokens/{id}', needs: 'signed_in', summary: 'Revoke an API token', params: requests.byId, status: 204, output: NOTHING },
  listSessions: { method: 'GET', path: '/api/v1/sessions', needs: 'configure', summary: 'List the sessions of all users', output: access.sessions },
  revokeSession: { method: 'DELETE', path: '/api/v1/sessions/{id}', needs: 'configure', summary: 'End the session of a user', params: requests.byId, status: 204, output: NOTHING },
  listAudit: { method: 'GET', path: '/api/v1/audit', needs: 'configure', summary: 'List audit entries, newest first', query: requests.auditQuery, output: audit.auditPage },
} as const satisfies Readonly<Record<string, Route>>

export type Routes = typeof ROUTES
export type Operation = keyof Routes

/** The part of an input that the route defines with a schema. */
export type InputPart<R, K extends string> = R extends {
  readonly [P in K]: infer S extends z.ZodType
}
  ? { readonly [P in K]: z.output<S> }
  : unknown
/** The query; optional when it has no required field. */
export type InputQuery<R> = R extends { readonly query: infer S extends z.ZodType }
  ? Record<never, never> extends z.output<S>
    ? { readonly query?: z.output<S> }
    : { readonly query: z.output<S> }
  : unknown

/** The input of an operation. */
export type Input<K extends Operation> = InputPart<Routes[K], 'params'> &
  InputQuery<Routes[K]> &
  InputPart<Routes[K], 'body'> &
  (Routes[K] extends { readonly ifMatch: true } ? { readonly ifMatch: string } : unknown) &
  (Routes[K] extends { readonly ifMatch: 'edit' } ? { readonly ifMatch?: string } : unknown)

export type Output<K extends Operation> = z.output<Routes[K]['output']>

/** Returns whether the route changes data. */
export const isMutation = (route: Route): boolean => route.method !== 'GET'
