import { ROUTES } from '@redrive/api'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import type { Caller } from '../access/caller.ts'
import { Refusal } from '../access/refusal.ts'
import type { WriteAudit } from '../audit/entry.ts'
import { runOn } from '../database.ts'
import type { ServerIdentity } from './identity.ts'
import type { NewToken, TokenRequest } from './port.ts'
import { personIdOf } from './provider.ts'

export interface IssueOptions {
  readonly pool: Pool
  readonly audit: WriteAudit
  readonly identity: ServerIdentity
  /** Of the provider. */
  readonly issuer: string | undefined
  /** Whose token it is: their subject (`sub`) at the provider. */
  readonly subject: string
  readonly request: TokenRequest
}

const PERSON = 'select id, name, groups from redrive_server.person where id = $1'

/**
 * A token for someone who has no session, such as the first one of all, or that of a machine. For whoever has
 * the config: the database is theirs anyway. It may no more than that person may, and it is written down.
 */
export async function issueToken(options: IssueOptions): Promise<NewToken> {
  refuseUnfit(options.request)
  const caller = await callerOf(options)
  const { name, actions, sources, isAgent = false } = options.request
  const entry = {
    caller,
    what: 'createToken',
    facts: { name, actions, sources, isAgent, by: 'who has the config' },
  }
  await options.audit({ ...entry, outcome: 'asked' })
  try {
    const made = await options.identity.tokens.create(caller, options.request)
    await options.audit({ ...entry, outcome: 'done', subject: made.id })
    return made
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    await options.audit({ ...entry, outcome: 'refused' })
    const { message, problems } = error
    throw new RedriveError('POLICY_INVALID', [message, ...problems].join('\n- '), { cause: error })
  }
}

/** Nobody has looked at it before: over the API the contract is what stands in front. */
function refuseUnfit(request: TokenRequest): void {
  const { error } = ROUTES.createToken.body.safeParse(request)
  if (error === undefined) return
  const problems = error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`)
  const text = ['The token does not fit what is expected:', ...problems].join('\n- ')
  throw new RedriveError('POLICY_INVALID', text, { problems })
}

async function callerOf({ pool, identity, issuer, subject }: IssueOptions): Promise<Caller> {
  if (issuer === undefined) {
    const message = 'In development everybody is known without a token: leave REDRIVE_TOKEN unset.'
    throw new RedriveError('POLICY_INVALID', message)
  }
  const id = personIdOf(issuer, subject)
  const [known] = await runOn(pool)<{ name: string; groups: readonly string[] }>(PERSON, [id])
  const person = { id, name: known?.name ?? subject, groups: known?.groups ?? [] }
  const caller = identity.login.callerOf({ id: 'config', person })
  if (caller.grants.length > 0) return caller
  throw new RedriveError(
    'POLICY_INVALID',
    `${subject} may do nothing here, so a token of theirs could not either. Name them in access (people), or let them log in once, so that their groups are known.`,
  )
}
