import { describe, expect, it } from 'vitest'
import { boundOf } from '../src/kafka/bound.ts'
import { checkLedger } from '../src/kafka/ledger.ts'
import type { StoredCommit } from '../src/kafka/wire-format.ts'
import { Story } from './evidence.ts'

const GROUP = 'billing'
const member = 'one'

const stored = (mark: number, metadata = '', at = 1_000_000): StoredCommit => ({
  group: GROUP,
  place: 'orders/0',
  mark,
  metadata,
  at,
})

const runs = (...lengths: readonly number[]) => `1.${Buffer.from(lengths).toString('base64url')}`

const assigned = (places: readonly string[], generation = 1, who = member) =>
  ({ what: 'assigned', group: GROUP, member: who, generation, places }) as const

const commit = (sentAt: number, isAccepted = true, generation = 1, who = member) =>
  ({
    what: 'commit',
    group: GROUP,
    member: who,
    generation,
    places: ['orders/0'],
    sentAt,
    isAccepted,
  }) as const

const textsIn = (story: Story, commits: readonly StoredCommit[]) =>
  checkLedger(story.evidence().entries, commits).map(({ rule, text }) => `${rule}: ${text}`)

describe('the commits of a group', () => {
  it('may grow below and above the committed offset', () => {
    const commits = [stored(2), stored(2, runs(1, 3)), stored(6), stored(6, runs(2, 1))]
    expect(textsIn(new Story(), commits)).toEqual([])
  })

  it('never revert finished records', () => {
    expect(textsIn(new Story(), [stored(5), stored(3)])).toEqual([
      'not fenced: orders/0: 3 to 4 were finished, and a later commit reverts that',
    ])
    expect(textsIn(new Story(), [stored(2, runs(1, 3)), stored(3, runs(1, 2))])).toEqual([
      'not fenced: orders/0: 3 to 3 were finished, and a later commit reverts that',
    ])
  })

  it('contain no record whose handler has not ended', () => {
    const story = new Story()
      .at('consumer-1', { what: 'delivered', id: 'a', position: 'orders/0/0' })
      .at('consumer-1', { what: 'effect', id: 'a', isNew: true })
    const { at = 0 } = story.evidence().entries.at(-1) ?? {}
    expect(textsIn(story, [stored(1, '', at)])).toEqual([])
    expect(textsIn(story, [stored(1, '', at - 5)])).toEqual([
      'committed early: orders/0/0 was committed 5 ms before its handler ended',
    ])
  })

  it('are not compared with ends of two copies that run at the same time', () => {
    const story = new Story()
      .at('consumer-1', { what: 'delivered', id: 'a', position: 'orders/0/0' })
      .at('consumer-1', { what: 'delivered', id: 'a', position: 'orders/0/9' })
      .at('consumer-1', { what: 'failed', id: 'a', attempt: 2 })
      .at('consumer-1', { what: 'effect', id: 'a', isNew: true })
    expect(textsIn(story, [stored(1, '', 0)])).toEqual([])
  })

  it('come from the owner, or from the member that releases the partition', () => {
    const first = assigned(['orders/0'])
    const letsGo = new Story().at('a', first, assigned([], 2), commit(0, true, 2))
    expect(textsIn(letsGo, [stored(1)])).toEqual([])
    const stale = new Story().at('a', first).at('b', assigned(['orders/0'], 2, 'two'))
    expect(textsIn(stale.at('a', commit(0, true, 2)), [stored(1)])).toEqual([
      'not fenced: a committed for orders/0 in generation 2, when its owner was two',
    ])
  })

  it('must not be empty', () => {
    expect(textsIn(new Story(), [])).toEqual(['scenario: nothing was ever committed'])
  })
})

describe('the number of explained duplicates', () => {
  const life = () =>
    new Story()
      .at('harness', { what: 'spawned', process: 'consumer-1', inFlight: 20 })
      .at('consumer-1', assigned(['orders/0']), { what: 'effect', id: 'a', isNew: true })
  const died = { what: 'exited', process: 'consumer-1', isCrash: true, inFlight: 20 } as const

  it('contains the messages in flight and those finished since the last commit', () => {
    expect(boundOf(life().at('harness', died).evidence().entries)).toBe(21)
    const committed = life().at('consumer-1', commit(Number.MAX_SAFE_INTEGER))
    expect(boundOf(committed.at('harness', died).evidence().entries)).toBe(20)
    const refused = life().at('consumer-1', commit(Number.MAX_SAFE_INTEGER, false))
    expect(boundOf(refused.at('harness', died).evidence().entries)).toBe(21)
  })

  it('is the same for a member that rejoins under another id, and 0 for a member that stays', () => {
    const other = life().at('consumer-1', assigned(['orders/0'], 2, 'two'))
    expect(boundOf(other.evidence().entries)).toBe(21)
    expect(boundOf(life().at('consumer-1', assigned([], 2)).evidence().entries)).toBe(0)
  })
})
