/** The words of the API, and nothing else: a program that only names them need not load the schemas. */

/**
 * What someone may do with the dead letters of a source. Nothing is allowed unless a grant says so.
 *
 * - `view`: that they exist: groups, counts, headers that are not masked, runs.
 * - `payload`: the body, masked.
 * - `unmask`: the body and headers as they came, edited bodies, and what a patch tests.
 * - `triage`: mute, resolve, assign, comment.
 * - `replay`: plan, pause, resume and cancel a run, and decide unknown outcomes.
 * - `edit`: plan a run that changes what goes out. A patch needs `payload`, too, and one that tests `unmask`.
 * - `approve`: let a run go out.
 * - `discard`: discard and restore.
 * - `export`: take many at once out of the catalog.
 * - `configure`: schemas, automatic replays, restores, the audit.
 */
export const ACTIONS = [
  'view',
  'payload',
  'unmask',
  'triage',
  'replay',
  'edit',
  'approve',
  'discard',
  'export',
  'configure',
] as const
export type Action = (typeof ACTIONS)[number]

/** Names for the sets of actions that teams need; several of them add up. */
export const ROLES = {
  viewer: ['view'],
  operator: ['view', 'payload', 'triage', 'replay', 'edit', 'discard'],
  approver: ['view', 'payload', 'approve'],
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
  'resolved',
  'discarded',
  'expired',
] as const
export const GROUP_STATES = ['open', 'muted', 'resolved'] as const
export const GROUP_ORDERS = ['last_seen', 'open_count', 'count'] as const
export const RUN_STATES = ['planned', 'running', 'paused', 'done', 'cancelled', 'lapsed'] as const
export const ITEM_STATES = [
  'planned',
  'skipped',
  'queued',
  'claimed',
  'publishing',
  'published',
  'resolved',
  'refailed',
  'unknown',
  'expired',
  'cancelled',
] as const
/** Gates that a plan may be told to pass. */
export const OVERRIDES = ['quarantined', 'too_old', 'too_many_cycles', 'failing_again'] as const
