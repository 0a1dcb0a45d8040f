import { Refusal } from '../access/refusal.ts'
import { groupTag } from './etag.ts'
import { notFound } from './guard.ts'
import type { Handlers } from './handlers.ts'
import type { DeskParts } from './parts.ts'
import { present } from './present.ts'
import { narrowed } from './sources.ts'

type Groups =
  | 'listGroups'
  | 'getGroup'
  | 'explainGroup'
  | 'changeGroup'
  | 'listGroupComments'
  | 'commentGroup'

export function groups({ catalog, guard }: DeskParts): Handlers<Groups> {
  const must = async (id: string) => {
    const found = await catalog.group(id)
    if (found === undefined) throw notFound('group')
    return found
  }
  return {
    async listGroups(caller, { query = {} }) {
      const { sources: asked, ...rest } = present(query)
      const sources = await narrowed(catalog, caller, asked)
      if (sources?.length === 0) return { groups: [] }
      const page = await catalog.groups({ ...rest, ...present({ sources }) })
      return { groups: [...page.groups], next: page.next }
    },

    async getGroup(caller, { params: { id } }) {
      await guard.sourceOf({ caller, what: 'getGroup' }, 'group', id)
      return must(id)
    },

    async explainGroup(caller, { params: { id } }) {
      await guard.sourceOf({ caller, what: 'explainGroup' }, 'group', id)
      const why = await catalog.whyGrouped(id)
      if (why === undefined) throw notFound('group')
      return { ...why, unknown: [...why.unknown] }
    },

    async changeGroup(caller, { params: { id }, body, ifMatch }) {
      const asked = { caller, what: 'changeGroup', subject: id } as const
      const source = await guard.sourceOf(asked, 'group', id, 'triage')
      return guard.mutate({ ...asked, source, facts: body }, async () => {
        const seen = await must(id)
        if (groupTag(seen) !== ifMatch) throw changed()
        // Whoever is faster between the two lines changes what this statement looks for.
        const outcome = await catalog.changeGroup(id, present(body), seen)
        if (outcome === 'changed') throw changed()
        return must(id)
      })
    },

    async listGroupComments(caller, { params: { id } }) {
      await guard.sourceOf({ caller, what: 'listGroupComments' }, 'group', id)
      return { comments: [...(await catalog.comments(id))] }
    },

    async commentGroup(caller, { params: { id }, body: { text } }) {
      const asked = { caller, what: 'commentGroup', subject: id } as const
      const source = await guard.sourceOf(asked, 'group', id, 'triage')
      const comment = { author: caller.person, text }
      await guard.mutate({ ...asked, source }, () => catalog.comment(id, comment))
    },
  }
}

export const changed = (): Refusal =>
  new Refusal('changed', 'It was changed since you looked at it. Look again, then decide.')
