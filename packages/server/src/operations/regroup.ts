import { auditedFilter, moveFacts } from './audit-facts.ts'
import type { OperationDeps } from './context.ts'
import { readSplitFilter } from './filter.ts'
import type { Handlers } from './handlers.ts'
import { valuesNeed } from './payload-filters.ts'
import { omitUndefined } from './present.ts'
import { shownGroup } from './shown.ts'

/** Operations that correct groups by hand. */
export function regroup({
  catalog,
  guard,
  reading,
  sealValue,
}: OperationDeps): Handlers<'mergeGroups' | 'unmergeGroup' | 'splitGroup' | 'listMergedGroups'> {
  return {
    async mergeGroups(caller, { params: { id }, body: { groups, reason } }) {
      const facts = { groups, reason }
      const audited = { caller, operation: 'mergeGroups', subject: id, facts } as const
      const source = await guard.sourceOf(audited, 'group', id, 'discard')
      // Without the permission to view a group, the caller must not learn that it exists.
      for (const group of groups) await guard.sourceOf(audited, 'group', group, 'discard')
      return guard.mutate({ ...audited, source }, async () =>
        shownGroup(
          reading,
          await catalog.regrouping.merge(id, { groups, by: caller.person, reason }),
        ),
      )
    },

    async unmergeGroup(caller, { params: { id }, body: { reason } }) {
      const into = (await catalog.group(id))?.mergedInto?.group
      const facts = { reason, ...(into === undefined ? {} : { from: into }) }
      const audited = { caller, operation: 'unmergeGroup', subject: id, facts } as const
      const source = await guard.sourceOf(audited, 'group', id, 'discard')
      return guard.mutate({ ...audited, source }, async () =>
        shownGroup(reading, await catalog.regrouping.unmerge(id)),
      )
    },

    async splitGroup(caller, { params: { id }, body: { filter, name, reason, cursor } }) {
      const conditions = omitUndefined(readSplitFilter(filter))
      // The fact "name" is the name of the caller.
      const facts = { filter: await auditedFilter(sealValue, filter), newGroup: name, reason }
      const audited = { caller, operation: 'splitGroup', subject: id, facts } as const
      const source = await guard.sourceOf(audited, 'group', id, 'discard')
      await guard.check(audited, source, valuesNeed(reading, source, conditions))
      const request = { conditions, name, by: caller.person, reason, ...omitUndefined({ cursor }) }
      const split = async () => {
        const done = await catalog.regrouping.split(id, request)
        return { ...done, group: shownGroup(reading, done.group) }
      }
      return guard.mutate({ ...audited, source }, split, (done) => ({
        facts: { ...facts, ...moveFacts(done) },
      }))
    },

    async listMergedGroups(caller, { params: { id } }) {
      await guard.sourceOf({ caller, operation: 'listMergedGroups' }, 'group', id)
      const merged = await catalog.regrouping.merged(id)
      return { groups: merged.map((one) => shownGroup(reading, one)) }
    },
  }
}
