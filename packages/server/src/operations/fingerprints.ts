import type { Input, Output } from '@redrive/api'
import type { FingerprintRule } from '@redrive/catalog'
import { moveFacts, only } from './audit-facts.ts'
import type { OperationDeps } from './context.ts'
import type { Handlers } from './handlers.ts'
import { omitUndefined } from './present.ts'
import { allowedSources } from './sources.ts'

type GivenRules = Input<'previewFingerprints'>['body']['rules']

/** Operations on fingerprint rules. The config of the server contains the rules. */
export function fingerprints({
  catalog,
  guard,
  reading,
}: OperationDeps): Handlers<'listFingerprints' | 'previewFingerprints' | 'applyFingerprints'> {
  const { regrouping } = catalog
  return {
    async listFingerprints(caller) {
      const sources = await allowedSources(catalog, caller, undefined)
      const isVisible = ({ source }: FingerprintRule) =>
        source === undefined || sources === undefined || sources.includes(source)
      return { rules: regrouping.rules.filter(isVisible) as Output<'listFingerprints'>['rules'] }
    },

    async previewFingerprints(caller, { body: { rules, sources: requested } }) {
      const allowed = await allowedSources(catalog, caller, requested)
      const sources = allowed ?? (await catalog.sourceNames())
      const found = await regrouping.preview(sources, rulesOf(rules))
      return {
        ...found,
        rules: found.rules.map((one) => ({
          ...one,
          from: one.from.map((group) => ({ ...group, title: reading.text(group.title) })),
          examples: one.examples.map((each) => ({ ...each, message: reading.text(each.message) })),
        })),
      }
    },

    async applyFingerprints(caller, { body: { sources, reason, cursor } }) {
      const rules = regrouping.rules.map(({ name }) => name)
      const audited = {
        caller,
        operation: 'applyFingerprints',
        facts: { sources, reason, rules },
      } as const
      for (const source of sources) await guard.check(audited, source, ['discard'])
      const about = omitUndefined({ source: only(sources) })
      return guard.mutate(
        { ...audited, ...about },
        () => regrouping.apply({ sources, ...omitUndefined({ cursor }) }),
        (done) => ({ facts: { ...audited.facts, ...moveFacts(done) } }),
      )
    },
  }
}

const rulesOf = (rules: GivenRules): readonly FingerprintRule[] | undefined =>
  rules?.map(({ match, ...rule }) => ({ ...omitUndefined(rule), match: omitUndefined(match) }))
