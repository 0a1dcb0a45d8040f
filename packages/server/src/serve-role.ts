import { RedriveError } from '@redrive/core'

/**
 * The roles of a process. Every role needs at least one process and may have several.
 *
 * - `api`: serves the HTTP API.
 * - `ingest`: moves dead letters from the brokers to the catalog.
 * - `replay`: publishes replays and records their outcomes.
 * - `watch`: delivers alerts and maintains the tables.
 */
export const SERVE_ROLES = ['api', 'ingest', 'replay', 'watch'] as const
export type ServeRole = (typeof SERVE_ROLES)[number]

/** Parses roles separated by commas. Returns all roles when there are none. */
export function parseServeRoles(texts: readonly string[] = []): readonly ServeRole[] {
  const names = texts.flatMap((one) => one.split(',')).map((one) => one.trim())
  const unknown = names.filter((one) => !isServeRole(one))
  if (unknown.length > 0) {
    throw new RedriveError(
      'POLICY_INVALID',
      `--role: expected one or more of ${SERVE_ROLES.join(', ')}, got ${unknown.map((one) => `'${one}'`).join(', ')}.`,
    )
  }
  return names.length === 0 ? SERVE_ROLES : SERVE_ROLES.filter((role) => names.includes(role))
}

const isServeRole = (text: string): text is ServeRole => SERVE_ROLES.includes(text as ServeRole)
