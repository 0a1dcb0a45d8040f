import { describe, expect, it } from 'vitest'
import { check } from '../src/evidence/check.ts'
import { rulesIn, Story } from './evidence.ts'

/** Returns one message of each kind at its correct end. */
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

  it('finds an acknowledged message that is lost', () => {
    const verdict = check(good().sent('gone').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'lost', id: 'gone' }])
    expect(verdict.figures).toMatchObject({ lost: 1, ok: 5 })
  })

  it('finds a lost message that a consumer started', () => {
    const story = good()
      .sent('gone', 'business')
      .at('consumer-1', { what: 'handler_started', id: 'gone', attempt: 1 })
    expect(rulesIn(check(story.drained().evidence()))).toEqual(['lost'])
  })

  it('finds a message that a consumer treated as handled although it never took effect', () => {
    const verdict = check(good().sent('claimed').handled('claimed', false).drained().evidence())
    expect(rulesIn(verdict)).toContain('lost')
  })

  it('does not report unacknowledged messages as lost', () => {
    const story = good().at('producer', { what: 'attempted', id: 'unknown', kind: 'good' })
    const { figures, violations } = check(story.drained().evidence())
    expect(violations).toEqual([])
    expect(figures).toMatchObject({ attempted: 6, acknowledged: 5, recovered: 0 })
  })

  it('counts unacknowledged messages with an effect as recovered', () => {
    const story = good()
      .at('producer', { what: 'attempted', id: 'unknown', kind: 'good' })
      .handled('unknown')
    const { figures, violations } = check(story.drained().evidence())
    expect(violations).toEqual([])
    expect(figures.recovered).toBe(1)
  })

  it.each([
    ['run', (story: Story) => story.handled('stranger')],
    ['in a queue', (story: Story) => story.holds('dlq', 'stranger')],
    ['in the database', (story: Story) => story.effect('stranger')],
  ])('finds a message that was never sent: %s', (_, appear) => {
    const verdict = check(appear(good()).drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'unexpected', id: 'stranger' }])
  })

  it('finds a duplicate that no fault explains', () => {
    const verdict = check(good().handled('a', false).drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'duplicates over the bound', id: 'a' }])
    expect(verdict.figures).toMatchObject({ duplicated: 1, bound: 0 })
  })

  it('finds a duplicated dead letter', () => {
    const verdict = check(good().holds('dlq', 'c').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'duplicates over the bound', id: 'c' }])
  })

  it('explains only the messages in flight at a crash', () => {
    const two = () => good().crash(2).handled('a', false).handled('b', false)
    expect(check(two().drained().evidence()).violations).toEqual([])
    const three = check(two().handled('a', false).drained().evidence())
    expect(rulesIn(three)).toEqual(['duplicates over the bound', 'duplicates over the bound'])
    expect(three.figures).toMatchObject({ duplicated: 3, bound: 2 })
  })

  it('explains one duplicate for an unknown response, and the in-flight ones for a lost connection', () => {
    const story = good()
      .at('harness', { what: 'spawned', process: 'consumer-1', inFlight: 4 })
      .at(
        'consumer-1',
        { what: 'event', type: 'unknown', id: 'a' },
        { what: 'event', type: 'connection_lost' },
      )
    expect(check(story.drained().evidence()).figures.bound).toBe(5)
  })

  it('explains a hand-off whose original came back with a lost connection', () => {
    const lost = { what: 'event', type: 'lost', id: 'a' } as const
    const handOffs = [
      { ...lost, note: 'retryAt' },
      { ...lost, note: 'settle' },
    ]
    const connectionLost = { what: 'event', type: 'connection_lost' } as const
    const boundWith = (...events: Parameters<ReturnType<typeof good>['at']>[1][]) =>
      check(
        good()
          .at('consumer-1', ...events)
          .drained()
          .evidence(),
      ).figures.bound
    expect(boundWith(...handOffs)).toBe(0)
    expect(boundWith(...handOffs, connectionLost)).toBe(1)
  })

  it('does not count a requested end as a crash', () => {
    const story = good()
      .at('harness', { what: 'exited', process: 'consumer-1', isCrash: false, inFlight: 9 })
      .handled('a', false)
    expect(rulesIn(check(story.drained().evidence()))).toEqual(['duplicates over the bound'])
  })

  it('finds a consumer that ended without being killed', () => {
    const end = { what: 'exited', process: 'consumer-1', isCrash: true, inFlight: 9 } as const
    const story = good().at('harness', { ...end, isByItself: true })
    expect(rulesIn(check(story.drained().evidence()))).toEqual(['ended with an error'])
  })

  it('finds an effect that happened twice, whatever the number of crashes', () => {
    const verdict = check(good().crash(50).handled('a').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'effect duplicated', id: 'a' }])
    expect(verdict.figures.effectDuplicates).toBe(1)
  })

  it('finds two consumers that got a confirmation for the same message', () => {
    const once = () => good().at('consumer-1', { what: 'settled', id: 'row' })
    expect(check(once().drained().evidence()).violations).toEqual([])
    const twice = once().at('consumer-2', { what: 'settled', id: 'row' })
    expect(check(twice.drained().evidence()).violations).toMatchObject([
      {
        rule: 'not fenced',
        id: 'row',
        text: 'consumer-1 and consumer-2 both got the confirmation that they finished it',
      },
    ])
  })

  it.each(['dlq', 'quarantine'] as const)(
    'finds a good message that was dead-lettered: %s',
    (place) => {
      const verdict = check(good().sent('fine', 'flaky').holds(place, 'fine').drained().evidence())
      expect(verdict.violations).toMatchObject([{ rule: 'false dead letter', id: 'fine' }])
      expect(verdict.figures).toMatchObject({ falseDeadLetters: 1, ok: 5 })
    },
  )

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

  it('finds a message that is still waiting', () => {
    const story = good().sent('late', 'flaky').holds('delay', 'late')
    const verdict = check(story.drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'not drained', id: 'late' }])
  })

  it('finds bytes that differ from the sent ones', () => {
    const story = good().sent('edited', 'business').holds('dlq', 'edited', false)
    expect(check(story.drained().evidence()).violations).toMatchObject([
      { rule: 'changed', id: 'edited' },
    ])
  })

  it('counts an effect that a killed consumer could not record', () => {
    const verdict = check(good().sent('quiet').effect('quiet').drained().evidence())
    expect(verdict.violations).toEqual([])
    expect(verdict.figures.ok).toBe(6)
  })

  it('finds a recovery that took too long, or never happened', () => {
    expect(rulesIn(check(good().drained(61).evidence()))).toEqual(['slow recovery'])
    expect(rulesIn(check(good().evidence()))).toEqual(['not drained'])
  })
})

describe('the checker with messages sent in the transaction of a business fact', () => {
  const facts = () => good().committed('a', 'b', 'c', 'd', 'e')
  const attempted = (story: Story, id: string) =>
    story.at('producer', { what: 'attempted', id, kind: 'good' })

  it('finds nothing when fact and message both exist, or neither', () => {
    const story = attempted(facts(), 'aborted').at('producer', { what: 'refused', id: 'aborted' })
    expect(check(story.drained().evidence()).violations).toEqual([])
  })

  it('finds a fact without its message when the producer got no response', () => {
    const verdict = check(attempted(facts(), 'gone').committed('gone').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'lost', id: 'gone' }])
  })

  it('counts a message with its fact as recovered when the producer got no response', () => {
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

  it('finds an acknowledged fact that is missing', () => {
    const verdict = check(facts().sent('told').handled('told').drained().evidence())
    expect(verdict.violations).toMatchObject([{ rule: 'lost', id: 'told' }])
  })
})
