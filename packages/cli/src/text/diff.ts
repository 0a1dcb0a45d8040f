export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added'
  readonly text: string
}

/** 2,000 lines per side. The table then has four million cells, which is still fast enough. */
const COMPARED_MAX = 2_000

/** Returns the removed, added and equal lines. */
export function diffLines(before: string, after: string): readonly DiffLine[] {
  const [old, fresh] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < old.length && start < fresh.length && old[start] === fresh[start]) start += 1
  let end = 0
  while (
    end < Math.min(old.length, fresh.length) - start &&
    old.at(-1 - end) === fresh.at(-1 - end)
  )
    end += 1
  return [
    ...old.slice(0, start).map(same),
    ...middleOf(old.slice(start, old.length - end), fresh.slice(start, fresh.length - end)),
    ...old.slice(old.length - end).map(same),
  ]
}

const same = (text: string): DiffLine => ({ kind: 'same', text })
const removed = (text: string): DiffLine => ({ kind: 'removed', text })
const added = (text: string): DiffLine => ({ kind: 'added', text })

function middleOf(old: readonly string[], fresh: readonly string[]): readonly DiffLine[] {
  if (Math.max(old.length, fresh.length) > COMPARED_MAX)
    return [...old.map(removed), ...fresh.map(added)]
  const common = commonOf(old, fresh)
  const width = fresh.length + 1
  const lines: DiffLine[] = []
  let [left, right] = [0, 0]
  while (left < old.length || right < fresh.length) {
    const down = (common[(left + 1) * width + right] ?? -1) as number
    const across = (common[left * width + right + 1] ?? -1) as number
    if (left < old.length && right < fresh.length && old[left] === fresh[right]) {
      lines.push(same(old[left] as string))
      left += 1
      right += 1
    } else if (right >= fresh.length || (left < old.length && down >= across)) {
      lines.push(removed(old[left] as string))
      left += 1
    } else {
      lines.push(added(fresh[right] as string))
      right += 1
    }
  }
  return lines
}

/** Returns the length of the longest common suffix for each pair of positions. */
function commonOf(old: readonly string[], fresh: readonly string[]): Uint16Array {
  const width = fresh.length + 1
  const common = new Uint16Array((old.length + 1) * width)
  for (let left = old.length - 1; left >= 0; left -= 1) {
    for (let right = fresh.length - 1; right >= 0; right -= 1) {
      const at = left * width + right
      common[at] =
        old[left] === fresh[right]
          ? (common[at + width + 1] as number) + 1
          : Math.max(common[at + width] as number, common[at + 1] as number)
    }
  }
  return common
}

/** Returns only the lines around changes. An undefined entry marks omitted lines. */
export function hunks(
  lines: readonly DiffLine[],
  around: number = 3,
): readonly (DiffLine | undefined)[] {
  const near = new Set<number>()
  for (const [at, { kind }] of lines.entries()) {
    if (kind === 'same') continue
    for (let one = at - around; one <= at + around; one += 1) near.add(one)
  }
  const shown: (DiffLine | undefined)[] = []
  for (const [at, line] of lines.entries()) {
    if (near.has(at)) shown.push(line)
    else if (shown.at(-1) !== undefined || at === 0) shown.push(undefined)
  }
  return shown
}
