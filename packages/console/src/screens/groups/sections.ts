import type { Group } from '@redrive/api'

export const SECTIONS = ['none', 'source', 'class', 'handler'] as const
export type SectionKey = (typeof SECTIONS)[number]

export type Item =
  | {
      readonly kind: 'section'
      readonly name: string
      readonly groups: readonly Group[]
      readonly isFolded: boolean
    }
  | { readonly kind: 'group'; readonly group: Group; readonly section: string }

/** Returns the rows of the list: groups in the given order, below the head of their section. */
export function itemsOf(
  groups: readonly Group[],
  by: SectionKey,
  folded: ReadonlySet<string>,
): readonly Item[] {
  if (by === 'none') return groups.map((group) => ({ kind: 'group', group, section: '' }))
  const sections = Map.groupBy(groups, (group) => group[by] ?? 'unknown')
  return [...sections].flatMap(([name, members]): readonly Item[] => [
    { kind: 'section', name, groups: members, isFolded: folded.has(name) },
    ...(folded.has(name)
      ? []
      : members.map((group) => ({ kind: 'group', group, section: name }) as const)),
  ])
}
