import type { FailureClass } from '@redrive/core'
import type { NewGroup } from '../ingest/new-group.ts'
import { namedGroupId } from '../ingest/identity.ts'
import { isMatch, type Traits } from './match.ts'
import type { FingerprintRule } from './rules.ts'

/** The values of a dead letter that its named group needs. */
type NamedTraits = Pick<Traits, 'message'> & {
  readonly class: string
  /** The handler of the dead letter itself, without the handler of its source. */
  readonly ownHandler: string | null
}

/**
 * Returns the part of a named group for a dead letter. A group has one part for each class and handler, because filters,
 * metrics and automatic replay read both from the group of a dead letter.
 */
export function namedGroup(source: string, name: string, traits: NamedTraits): NewGroup {
  const root: NewGroup = {
    id: namedGroupId(source, name),
    name,
    signature: `name:${name}`,
    algorithm: 0,
    class: traits.class as FailureClass,
    code: null,
    errorType: null,
    handler: null,
    frame: null,
    sample: traits.message,
  }
  const id = namedGroupId(source, name, traits.class, traits.ownHandler)
  return { ...root, id, handler: traits.ownHandler, root }
}

/** Returns the part of a named group for all handlers. */
export const withoutHandler = (source: string, part: NewGroup): NewGroup => ({
  ...part,
  id: namedGroupId(source, part.root?.name ?? '', part.class, null),
  handler: null,
})

/** Returns the first rule that matches. */
export const ruleFor = (
  rules: readonly FingerprintRule[],
  traits: Traits,
): FingerprintRule | undefined => rules.find(({ match }) => isMatch(match, traits))

/** Returns the rules that apply to a source. */
export const rulesOf = (
  rules: readonly FingerprintRule[],
  source: string,
): readonly FingerprintRule[] =>
  rules.filter((rule) => rule.source === undefined || rule.source === source)
