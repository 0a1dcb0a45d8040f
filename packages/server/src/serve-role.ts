import { RedriveError } from '@redrive/core'

/**
 * What a process does. `api` answers people and programs, `ingest` takes dead letters over from the brokers,
 * `replay` sends them back and hears what became of them, `watch` tells alerts and keeps the tables in order.
 * Any number of processes may have a role, and each role needs one.
 */
export const SERVE_ROLES = ['api', 'ingest', 'replay', 'watch'] as const
export type ServeRole = (typeof SERVE_ROLES)[number]

/** Of text with commas. Nothing said: all of them. */
export function parseServeRoles(texts: readonly string[] = []): readonly ServeRole[] {
  const said = texts.flatMap((one) => one.split(',')).map((one) => one.trim())
  const unknown = said.filter((one) => !isServeRole(one))
  if (unknown.length > 0) {
    throw new RedriveError(
      'POLICY_INVALID',
      `--role: expected some of ${SERVE_ROLES.join(', ')}, got ${unknown.map((one) => `'${one}'`).join(', ')}.`,
    )
  }
  return said.length === 0 ? SERVE_ROLES : SERVE_ROLES.filter((role) => said.includes(role))
}

const isServeRole = (text: string): text is ServeRole => SERVE_ROLES.includes(text as ServeRole)
