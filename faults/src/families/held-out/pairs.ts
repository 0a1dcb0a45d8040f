/** The groups of one family: for each of its messages, the group where the rules put it. */
export interface GroupedFamily {
  readonly name: string
  /** Families with the same value look alike and are different defects. */
  readonly alike: string | undefined
  readonly groups: readonly string[]
}

/** A number of pairs of messages, of all pairs of this kind. */
export interface PairCount {
  readonly pairs: number
  readonly of: number
}

export interface FamilyPairs {
  readonly name: string
  /** Number of groups that hold messages of this family. */
  readonly groups: number
  /** Pairs of messages of this family in different groups. */
  readonly split: PairCount
  /** Pairs of a message of this family and one of another family, in one group. */
  readonly merged: number
  /** The families of these pairs, most pairs first. */
  readonly mergedWith: readonly string[]
}

export interface PairFigures {
  /** Pairs of messages of one family that are in different groups. */
  readonly split: PairCount
  /** Pairs of messages of different families that are in one group. */
  readonly merged: PairCount
  /** The merged pairs of families that look alike. */
  readonly mergedAlike: PairCount
  /** The families in the order of the input. */
  readonly families: readonly FamilyPairs[]
}

type Counts = ReadonlyMap<string, number>

interface Counted extends GroupedFamily {
  readonly counts: Counts
}

/** Counts the pairs that the groups split and merge. */
export function pairFigures(grouped: readonly GroupedFamily[]): PairFigures {
  const counted = grouped.map((family) => ({ ...family, counts: countsOf(family.groups) }))
  const families = counted.map((family) => familyPairs(family, counted))
  return {
    split: sumOf(families.map(({ split }) => split)),
    merged: mergedAmong(counted, () => true),
    mergedAlike: mergedAmong(counted, (a, b) => a.alike !== undefined && a.alike === b.alike),
    families,
  }
}

/** Returns the families with the most wrong pairs, split or merged. Families without one are left out. */
export function worstOf(figures: PairFigures, limit: number): readonly FamilyPairs[] {
  const wrong = ({ split, merged }: FamilyPairs) => split.pairs + merged
  return figures.families
    .filter((family) => wrong(family) > 0)
    .toSorted((a, b) => wrong(b) - wrong(a) || (a.name < b.name ? -1 : 1))
    .slice(0, limit)
}

function familyPairs(family: Counted, all: readonly Counted[]): FamilyPairs {
  const rivals = all
    .filter((other) => other !== family)
    .map((other) => ({ name: other.name, pairs: commonPairs(family.counts, other.counts) }))
    .filter(({ pairs }) => pairs > 0)
    .toSorted((a, b) => b.pairs - a.pairs)
  return {
    name: family.name,
    groups: family.counts.size,
    split: splitPairs(family),
    merged: rivals.reduce((sum, { pairs }) => sum + pairs, 0),
    mergedWith: rivals.map(({ name }) => name),
  }
}

function splitPairs({ groups, counts }: Counted): PairCount {
  const of = pairsOf(groups.length)
  const together = [...counts.values()].reduce((sum, count) => sum + pairsOf(count), 0)
  return { pairs: of - together, of }
}

function mergedAmong(all: readonly Counted[], isMeant: (a: Counted, b: Counted) => boolean) {
  const counts = all.flatMap((family, index) =>
    all
      .slice(index + 1)
      .filter((other) => isMeant(family, other))
      .map((other) => ({
        pairs: commonPairs(family.counts, other.counts),
        of: family.groups.length * other.groups.length,
      })),
  )
  return sumOf(counts)
}

function commonPairs(a: Counts, b: Counts): number {
  return [...a].reduce((sum, [group, count]) => sum + count * (b.get(group) ?? 0), 0)
}

function pairsOf(count: number): number {
  return (count * (count - 1)) / 2
}

function sumOf(counts: readonly PairCount[]): PairCount {
  return counts.reduce((sum, { pairs, of }) => ({ pairs: sum.pairs + pairs, of: sum.of + of }), {
    pairs: 0,
    of: 0,
  })
}

function countsOf(groups: readonly string[]): Counts {
  const counts = new Map<string, number>()
  for (const group of groups) counts.set(group, (counts.get(group) ?? 0) + 1)
  return counts
}
