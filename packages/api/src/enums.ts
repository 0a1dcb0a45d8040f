/** The allowed values of the API, without the schemas: a program that needs only the names loads less. */

/**
 * Permissions on the dead letters of a source. A caller has only the permissions of their grants.
 *
 * - `view`: see groups, counts, unmasked headers and runs.
 * - `view_payload`: see the masked body.
 * - `view_unmasked`: see the unmasked body and headers, edited bodies and the values that a patch tests.
 * - `triage`: mute, resolve, assign and comment.
 * - `replay`: plan, pause, resume and cancel a run; set the outcome of unconfirmed replays.
 * - `edit`: plan a run that changes messages. A patch also requires `view_payload`; a patch with `test` requires `view_unmasked`.
 * - `approve`: approve and start a run.
 * - `discard`: discard and restore dead letters; merge and split groups; apply fingerprint rules.
 * - `export`: export dead letters in bulk.
 * - `configure`: schemas, automatic replay, restores and the audit log.
 */
export const ACTIONS = [
  'view',
  'view_payload',
  'view_unmasked',
  'triage',
  'replay',
  'edit',
  'approve',
  'discard',
  'export',
  'configure',
] as const
export type Action = (typeof ACTIONS)[number]

/** Named sets of permissions. Several roles add up. */
export const ROLES = {
  viewer: ['view'],
  operator: ['view', 'view_payload', 'triage', 'replay', 'edit', 'discard'],
  approver: ['view', 'view_payload', 'approve'],
  admin: ACTIONS,
} as const satisfies Readonly<Record<string, readonly Action[]>>
export type Role = keyof typeof ROLES

export const FAILURE_CLASSES = [
  'transient',
  'schema',
  'business',
  'integration',
  'unknown',
] as const
export const STATUSES = [
  'open',
  'replaying',
  'unknown',
  'not_returned',
  'resolved',
  'discarded',
  'expired',
] as const
export const GROUP_STATES = ['open', 'muted', 'resolved'] as const
export const GROUP_ORDERS = ['last_seen', 'open_count', 'count'] as const
export const RUN_STATES = [
  'planned',
  'running',
  'paused',
  'done',
  'cancelled',
  'plan_expired',
] as const
export const ITEM_STATES = [
  'planned',
  'skipped',
  'queued',
  'claimed',
  'publishing',
  'published',
  'resolved',
  'failed_again',
  'unknown',
  'not_returned',
  'expired',
  'cancelled',
] as const
/** What shows the outcome of a replay: the consumers confirm it, or only a returned message shows one. */
export const PROOFS = ['confirmations', 'returns'] as const
/** How the proof of a run was chosen. */
export const PROOF_REASONS = [
  'requested',
  'configured',
  'confirmed_before',
  'redrive_dead_letters',
  'foreign_dead_letters',
] as const
/** The state of a message that is set aside. */
export const SET_ASIDE_STATUSES = [
  'open',
  'requested',
  'replaying',
  'replayed',
  'discarded',
] as const
/** Gates that a plan may override. */
export const OVERRIDES = ['quarantined', 'too_old', 'too_many_cycles', 'failed_recently'] as const

/** The state of a source at its broker, from best to worst. */
export const SOURCE_STATUSES = ['connected', 'not_checked', 'missing_queue', 'unreachable'] as const
export type SourceStatus = (typeof SOURCE_STATUSES)[number]

/**
 * Kinds of values that detectors find in texts, in the order in which they run: a key contains texts that look like
 * tokens, and the user of a URL looks like an e-mail address.
 */
export const DETECTORS = ['privateKey', 'token', 'card', 'iban', 'email'] as const
export type Detector = (typeof DETECTORS)[number]
