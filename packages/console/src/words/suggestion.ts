import type { Group, Run } from '@redrive/api'
import { countText } from './numbers.ts'
import { durationText } from './times.ts'
import { runTitle } from './runs.ts'

/** The known facts about a group when a suggestion is made. The sentence leaves out unknown facts. */
export interface SuggestionFacts {
  readonly group: Group
  readonly now: number
  /** A running, paused or planned run of the group. */
  readonly run?: Run | undefined
}

export interface Suggestion {
  readonly kind: 'approve' | 'watch' | 'fix' | 'repair' | 'discard' | 'replay' | 'wait' | 'look'
  readonly title: string
  readonly reason: string
}

/** 5 min without a failure: retries of the consumers would have failed again by then. */
const QUIET_MS = 300_000

export const isGrowing = ({ lastSeenAt }: Group, now: number): boolean =>
  now - lastSeenAt < QUIET_MS

interface Rule {
  readonly fits: (facts: SuggestionFacts) => boolean
  readonly say: (facts: SuggestionFacts) => Suggestion
}

const isClass =
  (name: Group['class']) =>
  ({ group }: SuggestionFacts) =>
    group.class === name
const quietFor = ({ group, now }: SuggestionFacts) => durationText(now - group.lastSeenAt)

/** The first rule that fits makes the suggestion. */
const RULES: readonly Rule[] = [
  {
    fits: ({ run }) => run !== undefined,
    say: ({ run }) => ({
      kind: run?.state === 'planned' ? 'approve' : 'watch',
      title: run?.state === 'planned' ? 'Approve or wait.' : 'Watch the run.',
      reason:
        run === undefined ? '' : `${runTitle(run)} is ${STATE_WORDS[run.state] ?? run.state}.`,
    }),
  },
  {
    fits: (facts) => isClass('schema')(facts) && isGrowing(facts.group, facts.now),
    say: () => ({
      kind: 'fix',
      title: 'Fix the producer.',
      reason: 'Messages that do not match the schema still arrive.',
    }),
  },
  {
    fits: isClass('schema'),
    say: (facts) => ({
      kind: 'repair',
      title: 'Repair.',
      reason: `Unchanged messages fail again. None arrived for ${quietFor(facts)}.`,
    }),
  },
  {
    fits: isClass('business'),
    say: ({ group }) => ({
      kind: 'discard',
      title: 'Discard or assign.',
      reason: `A business failure fails again when it is replayed.${group.owner === undefined ? ' The group has no owner.' : ''}`,
    }),
  },
  {
    fits: (facts) => isClass('transient')(facts) && !isGrowing(facts.group, facts.now),
    say: (facts) => ({
      kind: 'replay',
      title: 'Replay.',
      reason: `A transient failure, and none for ${quietFor(facts)}.`,
    }),
  },
  {
    fits: isClass('transient'),
    say: (facts) => ({
      kind: 'wait',
      title: 'Wait.',
      reason: `Messages still fail. The last failure was ${quietFor(facts)} ago.`,
    }),
  },
  {
    fits: isClass('integration'),
    say: () => ({
      kind: 'look',
      title: 'Check the other system.',
      reason: 'It rejected the messages. Replay them after it accepts them.',
    }),
  },
]

const STATE_WORDS: Readonly<Record<string, string>> = {
  planned: 'awaiting approval',
  running: 'running',
  paused: 'paused',
}

const LOOK: Suggestion = {
  kind: 'look',
  title: 'Look at the messages.',
  reason: 'The class of this failure is unknown.',
}

export const suggestionFor = (facts: SuggestionFacts): Suggestion =>
  RULES.find(({ fits }) => fits(facts))?.say(facts) ?? LOOK

/** Returns the text of the button: Replay 38,112…. */
export function actionText({ kind }: Suggestion, open: number): string {
  const texts: Readonly<Record<Suggestion['kind'], string>> = {
    approve: 'Open plan',
    watch: 'Watch run',
    replay: `Replay ${countText(open)}…`,
    repair: `Repair ${countText(open)}…`,
    fix: `Review ${countText(open)}`,
    discard: `Review ${countText(open)}`,
    wait: `Review ${countText(open)}`,
    look: `Review ${countText(open)}`,
  }
  return texts[kind]
}
