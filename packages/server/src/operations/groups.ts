import { ProblemError } from '../access/problem-error.ts'
import { groupTag } from './etag.ts'
import { notFound } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { omitUndefined } from './present.ts'
import { shownExplanation, shownGroup } from './shown.ts'
import { allowedSources } from './sources.ts'

type Groups =
  | 'listGroups'
  | 'getGroup'
  | 'explainGroup'
  | 'changeGroup'
  | 'listGroupComments'
  | 'commentGroup'

export function groups({ catalog, guard, reading }: OperationDeps): Handlers<Groups> {
  const requireGroup = async (id: string) => {
    const found = await catalog.group(id)
    if (found === undefined) throw notFound('group')
    return found
  }
  return {
    async listGroups(caller, { query = {} }) {
      const { sources: requested, ...rest } = omitUndefined(query)
      const sources = await allowedSources(catalog, caller, requested)
      if (sources?.length === 0) return { groups: [] }
      const page = await catalog.groups({ ...rest, ...omitUndefined({ sources }) })
      return {
        groups: page.groups.map((one) => shownGroup(reading, one)),
        nextCursor: page.nextCursor,
      }
    },

    async getGroup(caller, { params: { id } }) {
      await guard.sourceOf({ caller, operation: 'getGroup' }, 'group', id)
      return shownGroup(reading, await requireGroup(id))
    },

    async explainGroup(caller, { params: { id } }) {
      await guard.sourceOf({ caller, operation: 'explainGroup' }, 'group', id)
      const explanation = await catalog.whyGrouped(id)
      if (explanation === undefined) throw notFound('group')
      return shownExplanation(reading, explanation)
    },

    async changeGroup(caller, { params: { id }, body, ifMatch }) {
      const audited = { caller, operation: 'changeGroup', subject: id } as const
      const source = await guard.sourceOf(audited, 'group', id, 'triage')
      return guard.mutate({ ...audited, source, facts: body }, async () => {
        const current = await requireGroup(id)
        if (groupTag(current) !== ifMatch) throw changed('group')
        // The statement checks the version again, in case of a concurrent change.
        const outcome = await catalog.changeGroup(id, omitUndefined(body), current)
        if (outcome === 'changed') throw changed('group')
        if (outcome === 'merged') throw merged(current.mergedInto?.group ?? '')
        return shownGroup(reading, await requireGroup(id))
      })
    },

    async listGroupComments(caller, { params: { id } }) {
      await guard.sourceOf({ caller, operation: 'listGroupComments' }, 'group', id)
      return { comments: [...(await catalog.comments(id))] }
    },

    async commentGroup(caller, { params: { id }, body: { text } }) {
      const audited = { caller, operation: 'commentGroup', subject: id } as const
      const source = await guard.sourceOf(audited, 'group', id, 'triage')
      const comment = { author: caller.person, text }
      await guard.mutate({ ...audited, source }, () => catalog.comment(id, comment))
    },
  }
}

const merged = (into: string) =>
  new ProblemError(
    'conflict',
    `This group is merged into ${into}, whose state and owner apply. Change that group, or unmerge this one first.`,
  )

export const changed = (what: 'group' | 'dead letter'): ProblemError =>
  new ProblemError(
    'precondition_failed',
    `The ${what} has changed since you read it. Read it again, then retry.`,
  )
