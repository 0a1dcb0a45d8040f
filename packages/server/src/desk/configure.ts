import { Refusal } from '../access/refusal.ts'
import type { Handlers } from './handlers.ts'
import type { DeskParts } from './parts.ts'
import { present } from './present.ts'

type Configure =
  | 'keepSchema'
  | 'allowAutoReplay'
  | 'acknowledgeRestore'
  | 'listTokens'
  | 'createToken'
  | 'revokeToken'
  | 'listAudit'

export function configure(parts: DeskParts): Handlers<Configure> {
  const { catalog, guard, identity, readAudit } = parts
  return {
    async keepSchema(caller, { params: { source }, body }) {
      const deed = { caller, what: 'keepSchema', source } as const
      await guard.check(deed, source, ['configure'])
      const facts = present({ type: body.type })
      await guard.mutate({ ...deed, facts }, () =>
        catalog.replays.keepSchema({ ...present(body), source }),
      )
    },

    async allowAutoReplay(caller, { params: { source }, body }) {
      const deed = { caller, what: 'allowAutoReplay', source, facts: body } as const
      // It approves every run to come: so it needs that as well, and no agent ever has it.
      await guard.check(deed, source, ['configure', 'approve'])
      const { allowed, ...how } = present(body)
      const auto = { by: caller.person, ...(how as { readonly ratePerSecond?: number }) }
      await guard.mutate(deed, () => catalog.replays.allowAuto(source, allowed ? auto : undefined))
    },

    async acknowledgeRestore(caller) {
      const deed = { caller, what: 'acknowledgeRestore' } as const
      await guard.checkAll(deed, 'configure')
      await guard.mutate(deed, () => catalog.replays.acknowledgeRestore({ by: caller.person }))
    },

    async listTokens(caller) {
      return { tokens: [...(await identity.tokens.list(caller))] }
    },

    async createToken(caller, { body }) {
      const deed = { caller, what: 'createToken', facts: body } as const
      // One that is not an agent's could approve what the agent planned.
      if (caller.isAgent) throw await guard.denial(deed, 'An agent does not make tokens.')
      const work = () => identity.tokens.create(caller, body)
      return guard.mutate(deed, work, ({ id }) => ({ subject: id }))
    },

    async revokeToken(caller, { params: { id } }) {
      await guard.mutate({ caller, what: 'revokeToken', subject: id }, async () => {
        if (await identity.tokens.revoke(caller, id)) return
        throw new Refusal('not_found', 'You have no such token.')
      })
    },

    async listAudit(caller, { query = {} }) {
      const deed = { caller, what: 'listAudit', ...present({ source: query.source }) } as const
      if (query.source === undefined) await guard.checkAll(deed, 'configure')
      else await guard.check(deed, query.source, ['configure'])
      return readAudit(query)
    },
  }
}
