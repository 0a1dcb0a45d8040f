import { describe, expect, it } from 'vitest'
import { check } from '../src/check.ts'
import { rulesIn, Story } from './evidence.ts'

/** One message of each kind where it belongs. */
const good = () =>
  new Story()
    .sent('a')
    .handled('a')
    .sent('b', 'flaky')
    .handled('b')
    .sent('c', 'business')
    .holds('dlq', 'c')
    .sent('d', 'repeats')
    .holds('quarantine', 'd')
    .sent('e', 'later')
    .holds('delay', 'e')

describe('the checker', () => {
  it('finds nothing in a good history', () => {
    const { figures, violations } = check(good().drained(3).evidence())
    expect(violations).toEqual([])
    expect(figures).toEqual({
      attempted: 5,
      acknowledged: 5,
      ok: 5,
      lost: 0,
      duplicated: 0,
      recovered: 0,
      unexpected: 0,
      bound: 0,
      effectDuplicates: 0,
      falseDeadLetters: 0,
      recoverySeconds: 3,
    })
  })

  it('finds a message that was acknowledged and is nowhere', () => {
    const verdict = check(good().sent('gone').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'lost', id: 'gone' }])
    expect(verdict.figures).toMatchObject({ lost: 1, ok: 5 })
  })

  it('finds one that a consumer began and that is nowhere', () => {
    const story = good()
      .sent('gone', 'business')
      .at('consumer-1', { what: 'handler_started', id: 'gone', attempt: 1 })
    expect(rulesIn(check(story.drained().evidence()))).toEqual(['lost'])
  })

  it('finds one that a consumer took for handled, though it never took effect', () => {
    const verdict = check(good().sent('claimed').handled('claimed', false).drained().evidence())
    expect(rulesIn(verdict)).toContain('lost')
  })

  it('does not call lost what the broker never acknowledged', () => {
    const story = good().at('producer', { what: 'attempted', id: 'unknown', kind: 'good' })
    const { figures, violations } = check(story.drained().evidence())
    expect(violations).toEqual([])
    expect(figures).toMatchObject({ attempted: 6, acknowledged: 5, recovered: 0 })
  })

  it('counts as recovered what was not acknowledged and came through', () => {
    const story = good()
      .at('producer', { what: 'attempted', id: 'unknown', kind: 'good' })
      .handled('unknown')
    const { figures, violations } = check(story.drained().evidence())
    expect(violations).toEqual([])
    expect(figures.recovered).toBe(1)
  })

  it.each([
    ['run', (story: Story) => story.handled('nobody')],
    ['in a queue', (story: Story) => story.holds('dlq', 'nobody')],
    ['in the database', (story: Story) => story.effect('nobody')],
  ])('finds a message that nobody sent: %s', (_, appear) => {
    const verdict = check(appear(good()).drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'unexpected', id: 'nobody' }])
  })

  it('finds a duplicate that no fault explains', () => {
    const verdict = check(good().handled('a', false).drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'duplicates over the bound', id: 'a' }])
    expect(verdict.figures).toMatchObject({ duplicated: 1, bound: 0 })
  })

  it('finds a dead letter that is there twice', () => {
    const verdict = check(good().holds('dlq', 'c').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'duplicates over the bound', id: 'c' }])
  })

  it('counts what was in hand at a crash as explained, and not one more', () => {
    const two = () => good().crash(2).handled('a', false).handled('b', false)
    expect(check(two().drained().evidence()).violations).toEqual([])
    const three = check(two().handled('a', false).drained().evidence())
    expect(rulesIn(three)).toEqual(['duplicates over the bound', 'duplicates over the bound'])
    expect(three.figures).toMatchObject({ duplicated: 3, bound: 2 })
  })

  it('explains one duplicate by one unknown answer, and by a lost connection what was in hand', () => {
    const story = good()
      .at('harness', { what: 'spawned', process: 'consumer-1', inFlight: 4 })
      .at(
        'consumer-1',
        { what: 'event', type: 'unknown', id: 'a' },
        { what: 'event', type: 'connection_lost' },
      )
    expect(check(story.drained().evidence()).figures.bound).toBe(5)
  })

  it('does not take the end that a process was asked for as a crash', () => {
    const story = good()
      .at('harness', { what: 'exited', process: 'consumer-1', isCrash: false, inFlight: 9 })
      .handled('a', false)
    expect(rulesIn(check(story.drained().evidence()))).toEqual(['duplicates over the bound'])
  })

  it('finds a consumer that ended although nobody killed it', () => {
    const end = { what: 'exited', process: 'consumer-1', isCrash: true, inFlight: 9 } as const
    const story = good().at('harness', { ...end, isByItself: true })
    expect(rulesIn(check(story.drained().evidence()))).toEqual(['died by itself'])
  })

  it('finds an effect that happened twice, however many crashes there were', () => {
    const verdict = check(good().crash(50).handled('a').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'effect duplicated', id: 'a' }])
    expect(verdict.figures.effectDuplicates).toBe(1)
  })

  it('finds that two consumers were told they had finished the same message', () => {
    const once = () => good().at('consumer-1', { what: 'settled', id: 'row' })
    expect(check(once().drained().evidence()).violations).toEqual([])
    const twice = once().at('consumer-2', { what: 'settled', id: 'row' })
    expect(check(twice.drained().evidence()).violations).toMatchObject([
      {
        rule: 'not fenced',
        id: 'row',
        text: 'consumer-1 and consumer-2 were told that they had finished it',
      },
    ])
  })

  it.each(['dlq', 'quarantine'] as const)('finds a good message that was given up: %s', (place) => {
    const verdict = check(good().sent('fine', 'flaky').holds(place, 'fine').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'false dead letter', id: 'fine' }])
    expect(verdict.figures).toMatchObject({ falseDeadLetters: 1, ok: 5 })
  })

  it('finds a bad message that took effect, or is in the wrong queue', () => {
    const story = good()
      .sent('paid', 'business')
      .handled('paid')
      .sent('aside', 'business')
      .holds('quarantine', 'aside')
    expect(check(story.drained().evidence()).violations).toMatchObject([
      { rule: 'in the wrong place', id: 'paid' },
      { rule: 'in the wrong place', id: 'aside' },
    ])
  })

  it('finds a message that still waits', () => {
    const story = good().sent('late', 'flaky').holds('delay', 'late')
    const verdict = check(story.drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'not drained', id: 'late' }])
  })

  it('finds bytes that are not those that were sent', () => {
    const story = good().sent('edited', 'business').holds('dlq', 'edited', false)
    expect(check(story.drained().evidence()).violations).toMatchObject([
      { rule: 'changed', id: 'edited' },
    ])
  })

  it('counts an effect that the killed consumer could not write down', () => {
    const verdict = check(good().sent('quiet').effect('quiet').drained().evidence())
    expect(verdict.violations).toEqual([])
    expect(verdict.figures.ok).toBe(6)
  })

  it('finds a recovery that took too long, or never came', () => {
    expect(rulesIn(check(good().drained(61).evidence()))).toEqual(['slow recovery'])
    expect(rulesIn(check(good().evidence()))).toEqual(['not drained'])
  })
})

describe('the checker, where messages are sent in the transaction of a business fact', () => {
  const facts = () => good().committed('a', 'b', 'c', 'd', 'e')
  const attempted = (story: Story, id: string) =>
    story.at('producer', { what: 'attempted', id, kind: 'good' })

  it('finds nothing when fact and message are both there, or neither is', () => {
    const story = attempted(facts(), 'aborted').at('producer', { what: 'refused', id: 'aborted' })
    expect(check(story.drained().evidence()).violations).toEqual([])
  })

  it('finds a fact without its message, though the producer was told nothing', () => {
    const verdict = check(attempted(facts(), 'gone').committed('gone').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'lost', id: 'gone' }])
  })

  it('counts as recovered a message whose producer was told nothing, with its fact', () => {
    const story = attempted(facts(), 'unknown').committed('unknown').handled('unknown')
    const { figures, violations } = check(story.drained().evidence())
    expect(violations).toEqual([])
    expect(figures.recovered).toBe(1)
  })

  it('finds a message without its fact', () => {
    const verdict = check(attempted(facts(), 'ghost').handled('ghost').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'unexpected', id: 'ghost' }])
    expect(verdict.figures.unexpected).toBe(1)
  })

  it('finds a fact that was acknowledged and is gone', () => {
    const verdict = check(facts().sent('told').handled('told').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'lost', id: 'told' }])
  })
})
