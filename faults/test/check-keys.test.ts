import { describe, expect, it } from 'vitest'
import { checkKeys } from '../src/evidence/check-keys.ts'
import { Story } from './evidence.ts'

const keyOf = (id: string) => id.split('/')[0] ?? ''
const textsIn = (story: Story) =>
  checkKeys(story.evidence().entries, keyOf).map(({ id, text }) => `${id} ${text}`)

const began = (story: Story, id: string, by = 'consumer-1') =>
  story.at(by, { what: 'handler_started', id, attempt: 1 })
const ended = (story: Story, id: string, by = 'consumer-1') =>
  story.at(by, { what: 'effect', id, isNew: true })

const two = () => new Story().sent('key/1').sent('key/2')

const PLACE = 'orders/0'

interface Given {
  readonly member: string
  readonly generation: number
  readonly places?: readonly string[]
}

const given = (story: Story, by: string, { places = [], ...round }: Given) =>
  story.at(by, { what: 'assigned', group: 'group', ...round, places })

const exited = (story: Story, process: string) =>
  story.at('harness', { what: 'exited', process, isCrash: true, inFlight: 1 })

/** `a` owns the partition and runs the first message of its key. */
const shared = () => {
  const story = given(two(), 'a', { member: 'a1', generation: 1, places: [PLACE] })
  story.at('a', { what: 'delivered', id: 'key/1', position: `${PLACE}/7` })
  return began(story, 'key/1', 'a')
}

describe('the order of a key', () => {
  it('is kept when each message waits for the previous one, and when both run again after a crash', () => {
    const story = two().handled('key/1').handled('key/2')
    expect(textsIn(story)).toEqual([])
    const again = began(ended(began(story, 'key/1', 'b'), 'key/1', 'b'), 'key/2', 'b')
    expect(textsIn(again)).toEqual([])
  })

  it('is broken by a message that starts too early', () => {
    expect(textsIn(two().handled('key/2').handled('key/1'))).toEqual([
      'key/2 started before key/1 finished',
      'key/1 consumer-1 started it again after a later one',
    ])
  })

  it('is broken by two concurrent messages, wherever they run', () => {
    const story = two().handled('key/1')
    expect(textsIn(began(began(story, 'key/1', 'a'), 'key/2', 'b'))).toEqual([
      'key/2 ran concurrently with key/1 in a',
    ])
  })

  it('is not blocked by a message with a business error, or whose process died', () => {
    const refused = new Story().sent('key/1', 'business').sent('key/2')
    began(refused, 'key/1').at('consumer-1', { what: 'failed', id: 'key/1', attempt: 1 })
    expect(textsIn(began(refused, 'key/2'))).toEqual([])
    const dead = exited(began(two(), 'key/1', 'a'), 'a')
    expect(textsIn(began(dead, 'key/1', 'b'))).toEqual([])
  })

  it('is not broken by a process that was killed before its end was noticed', () => {
    const killed = began(two(), 'key/1', 'a').at('harness', { what: 'killed', process: 'a' })
    // It may start one more message before the signal arrives.
    began(began(killed, 'key/1', 'a'), 'key/1', 'b')
    expect(textsIn(exited(killed, 'a'))).toEqual([])
  })

  it('is not broken by a removed member after another one owns its partition', () => {
    const story = shared()
    given(story, 'b', { member: 'b1', generation: 2, places: [PLACE] })
    began(story, 'key/1', 'b')
    began(ended(story, 'key/1', 'a'), 'key/2', 'a')
    expect(textsIn(given(story, 'a', { member: 'a2', generation: 3 }))).toEqual([])
  })

  it('is not broken by a member that is killed before it can rejoin', () => {
    const story = shared()
    given(story, 'b', { member: 'b1', generation: 2, places: [PLACE] })
    began(story, 'key/1', 'b').at('harness', { what: 'killed', process: 'a' })
    expect(textsIn(exited(story, 'a'))).toEqual([])
  })

  it('is broken by a member that stays in its group, and before another one owns its partition', () => {
    const broken = ['key/1 ran concurrently with key/1 in a']
    const staying = shared()
    given(staying, 'b', { member: 'b1', generation: 2, places: [PLACE] })
    began(staying, 'key/1', 'b')
    expect(textsIn(staying)).toEqual(broken)
    expect(textsIn(given(staying, 'a', { member: 'a1', generation: 2 }))).toEqual(broken)
    const early = given(shared(), 'b', { member: 'b1', generation: 2, places: ['orders/1'] })
    began(early, 'key/1', 'b')
    expect(textsIn(given(early, 'a', { member: 'a2', generation: 3 }))).toEqual(broken)
    const sameRound = given(shared(), 'b', { member: 'b1', generation: 1, places: [PLACE] })
    began(sameRound, 'key/1', 'b')
    expect(textsIn(given(sameRound, 'a', { member: 'a2', generation: 2 }))).toEqual(broken)
  })

  it('is broken within one process that its group removes later', () => {
    const story = began(ended(shared(), 'key/1', 'a'), 'key/2', 'a')
    began(story, 'key/1', 'a')
    given(story, 'b', { member: 'b1', generation: 2, places: [PLACE] })
    expect(textsIn(given(story, 'a', { member: 'a2', generation: 3 }))).toEqual([
      'key/1 ran concurrently with key/2 in a',
      'key/1 a started it again after a later one',
    ])
  })
})
