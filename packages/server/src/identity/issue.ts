import { ROUTES } from '@redrive/api/internal'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'
import type { WriteAudit } from '../audit/entry.ts'
import { runOn } from '../database.ts'
import type { ServerIdentity } from './identity.ts'
import type { NewToken, TokenRequest } from './port.ts'
import { personIdOf } from './provider.ts'
import { PERSON, type PersonRow } from './statements.ts'

export interface IssueOptions {
  readonly pool: Pool
  readonly audit: WriteAudit
  readonly identity: ServerIdentity
  /** Issuer URL of the provider. */
  readonly issuer: string | undefined
  /** Subject (`sub` claim) of the owner of the token. */
  readonly subject: string
  readonly request: TokenRequest
}

/**
 * Creates a token without a session, for example the first token or the token of a program. The caller needs the
 * config, which already gives access to the database. The token is limited to the permissions of its owner, and the
 * audit log records it.
 */
export async function issueToken(options: IssueOptions): Promise<NewToken> {
  validateRequest(options.request)
  const caller = await callerOf(options)
  const { name, actions, sources, isAgent = false } = options.request
  const entry = {
    caller,
    via: 'config',
    operation: 'createToken',
    facts: {
      token: name,
      actions,
      sources,
      forAgent: isAgent,
      by: 'administrator with the config',
    },
  } as const
  await options.audit({ ...entry, outcome: 'requested' })
  try {
    const created = await options.identity.tokens.create(caller, options.request)
    await options.audit({ ...entry, outcome: 'done', subject: created.id })
    return created
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    await options.audit({ ...entry, outcome: 'refused' })
    const { message, problems } = error
    throw new RedriveError('POLICY_INVALID', [message, ...problems].join('\n- '), { cause: error })
  }
}

/** Validates the request. For requests over HTTP the API does this. */
function validateRequest(request: TokenRequest): void {
  const { error } = ROUTES.createToken.body.safeParse(request)
  if (error === undefined) return
  const problems = error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  const text = ['The request for a token is not valid:', ...problems].join('\n- ')
  throw new RedriveError('POLICY_INVALID', text, { problems })
}

async function callerOf({ pool, identity, issuer, subject }: IssueOptions): Promise<Caller> {
  if (issuer === undefined) {
    const message = 'Development mode does not use tokens. Unset REDRIVE_TOKEN.'
    throw new RedriveError('POLICY_INVALID', message)
  }
  const id = personIdOf(issuer, subject)
  const [known] = await runOn(pool)<PersonRow>(PERSON, [id])
  const person = {
    id,
    name: known?.name ?? subject,
    groups: known?.groups ?? [],
    groupsAgeMs: known?.groups_age_ms ?? 0,
  }
  const session = identity.login.callerOf({ id: 'config', person })
  const caller: Caller = { ...session, credential: undefined }
  if (caller.grants.length > 0) return caller
  throw new RedriveError(
    'POLICY_INVALID',
    `User "${subject}" has no permissions, so a token would have none. Add the user to "people" in access, or let the user log in, so that their groups are known.`,
  )
}
