import type { Group } from '@redrive/api'
import { countText } from './numbers.ts'

export interface MergeFact {
  readonly text: string
  readonly isWarning: boolean
}

const PROPERTIES = ['class', 'code', 'handler'] as const

/** Returns what an operator should know before a merge: what is equal, what differs, and how to undo it. */
export function mergeFacts(target: Group, others: readonly Group[]): readonly MergeFact[] {
  const isEqual = (name: (typeof PROPERTIES)[number]) =>
    others.every((one) => one[name] === target[name])
  const equal = PROPERTIES.filter((name) => isEqual(name) && target[name] !== undefined)
  const different = PROPERTIES.filter((name) => !isEqual(name))
  // Open dead letters open a resolved group again.
  const state =
    target.state === 'resolved' && others.some(({ openCount }) => openCount > 0)
      ? 'open'
      : target.state
  const unlike = [target, ...others].filter((one) => one.state !== state).length
  const facts: MergeFact[] = []
  facts.push({ text: `Same ${listed(['source', ...equal])}.`, isWarning: false })
  if (different.length > 0) facts.push({ text: `Different ${listed(different)}.`, isWarning: true })
  if (unlike > 0) {
    const subject = unlike === 1 ? '1 group is' : `${countText(unlike)} groups are`
    facts.push({
      text: `${subject} not ${state}. The merged group is ${state}.`,
      isWarning: true,
    })
  }
  facts.push({ text: 'Later failures of these groups join the merged group.', isWarning: false })
  const undo =
    'To undo it, open the tab Grouping of the merged group. No message is changed or replayed.'
  facts.push({ text: undo, isWarning: false })
  return facts
}

const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
