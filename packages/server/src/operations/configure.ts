import { allowsAll } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'
import type { AuditedAction, Authorizer } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { omitUndefined } from './present.ts'

type Configure =
  | 'setSchema'
  | 'setAutoReplay'
  | 'acknowledgeRestore'
  | 'listTokens'
  | 'createToken'
  | 'revokeToken'
  | 'listSessions'
  | 'revokeSession'
  | 'listAudit'

/** Whether a caller may see and revoke the credentials of other users. An agent never may. */
const isAdmin = (caller: Caller) => !caller.isAgent && allowsAll(caller, 'configure')

async function requireAdmin(guard: Authorizer, audited: AuditedAction): Promise<void> {
  if (isAdmin(audited.caller)) return
  throw await guard.denial(
    audited,
    'Permission "configure" on all sources is required, and agents never have it here.',
  )
}

export function configure(parts: OperationDeps): Handlers<Configure> {
  const { catalog, guard, identity, readAudit } = parts
  return {
    async setSchema(caller, { params: { source }, body }) {
      const audited = { caller, operation: 'setSchema', source } as const
      await guard.check(audited, source, ['configure'])
      const facts = omitUndefined({ type: body.type })
      await guard.mutate({ ...audited, facts }, () =>
        catalog.replays.setSchema({ ...omitUndefined(body), source }),
      )
    },

    async setAutoReplay(caller, { params: { source }, body }) {
      const audited = { caller, operation: 'setAutoReplay', source, facts: body } as const
      // It approves all future runs, so it requires "approve", which agents never have.
      await guard.check(audited, source, ['configure', 'approve'])
      const { allowed, ...how } = omitUndefined(body)
      const auto = { by: caller.person, ...(how as { readonly ratePerSecond?: number }) }
      return guard.mutate(audited, async () => ({
        state: await catalog.replays.enableAutoReplay(source, allowed ? auto : undefined),
      }))
    },

    async acknowledgeRestore(caller) {
      const audited = { caller, operation: 'acknowledgeRestore' } as const
      await guard.checkAll(audited, 'configure')
      await guard.mutate(audited, () => catalog.replays.acknowledgeRestore({ by: caller.person }))
    },

    async listTokens(caller, { query: { everyone = false } = {} }) {
      if (!everyone) return { tokens: [...(await identity.tokens.list(caller))] }
      const audited = { caller, operation: 'listTokens', facts: { everyone } } as const
      await requireAdmin(guard, audited)
      await guard.seen(audited)
      return { tokens: [...(await identity.tokens.listAll())] }
    },

    async listSessions(caller) {
      const audited = { caller, operation: 'listSessions' } as const
      await requireAdmin(guard, audited)
      await guard.seen(audited)
      return { sessions: [...(await identity.sessions.list())] }
    },

    async revokeSession(caller, { params: { id } }) {
      const audited = { caller, operation: 'revokeSession', subject: id } as const
      await requireAdmin(guard, audited)
      await guard.mutate(audited, async () => {
        if (await identity.sessions.revoke(id)) return
        throw new ProblemError('not_found', 'There is no open session with this id.')
      })
    },

    async createToken(caller, { body }) {
      const { name: token, isAgent: forAgent = false, ...rest } = body
      // The facts "name" and "isAgent" are those of the caller.
      const facts = { token, forAgent, ...rest }
      const audited = { caller, operation: 'createToken', facts } as const
      // A token that is not an agent's could approve what the agent planned.
      if (caller.isAgent) throw await guard.denial(audited, 'An agent cannot create tokens.')
      const work = () => identity.tokens.create(caller, body)
      return guard.mutate(audited, work, ({ id }) => ({ subject: id }))
    },

    async revokeToken(caller, { params: { id } }) {
      await guard.mutate({ caller, operation: 'revokeToken', subject: id }, async () => {
        if (await identity.tokens.revoke(caller, id)) return
        if (isAdmin(caller) && (await identity.tokens.revokeAny(id))) return
        throw new ProblemError('not_found', 'You have no token with this id.')
      })
    },

    async listAudit(caller, { query = {} }) {
      const audited = {
        caller,
        operation: 'listAudit',
        ...omitUndefined({ source: query.source }),
      } as const
      if (query.source === undefined) await guard.checkAll(audited, 'configure')
      else await guard.check(audited, query.source, ['configure'])
      return readAudit(query)
    },
  }
}
