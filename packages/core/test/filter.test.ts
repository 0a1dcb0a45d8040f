import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Delivery } from '../src/delivery.ts'
import {
  type DeadLetterCandidate,
  type DeadLetterFilter,
  isAlwaysKept,
  isKept,
  KEEP_ALL,
  type Matcher,
} from '../src/filter.ts'
import { aDelivery, aFailure } from './fixtures.ts'

const DELIVERY = aDelivery({ type: 'order.placed', contentType: undefined })
const FAILURE = aFailure({ signature: '1-aaaa', type: 'Error', code: undefined })

const CANDIDATE: DeadLetterCandidate = { delivery: DELIVERY, failure: FAILURE }

function kept(filter: Partial<DeadLetterFilter>, delivery: Partial<Delivery> = {}): boolean {
  return isKept(
    { ...KEEP_ALL, ...filter },
    { ...CANDIDATE, delivery: { ...DELIVERY, ...delivery } },
  )
}

const throws = () => {
  throw new Error('a bug in the filter')
}

describe('the default filter', () => {
  test('keeps everything', () => {
    expect(isKept(KEEP_ALL, CANDIDATE)).toBe(true)
  })

  test('is frozen', () => {
    expect(KEEP_ALL).toEqual({ drop: [], keep: [], keepIf: undefined })
    expect(Object.isFrozen(KEEP_ALL)).toBe(true)
    expect(Object.isFrozen(KEEP_ALL.drop)).toBe(true)
    expect(Object.isFrozen(KEEP_ALL.keep)).toBe(true)
  })
})

describe('precedence', () => {
  const hit: Matcher = 'order.placed'
  const miss: Matcher = 'order.cancelled'

  test.each<[boolean, boolean, boolean | undefined, boolean]>([
    // drop, keep, keepIf, kept
    [false, false, undefined, true],
    [false, false, true, true],
    [false, false, false, false],
    [false, true, undefined, true],
    [false, true, true, true],
    [false, true, false, true],
    [true, false, undefined, false],
    [true, false, true, false],
    [true, false, false, false],
    [true, true, undefined, false],
    [true, true, true, false],
    [true, true, false, false],
  ])('drop %s, keep %s, keepIf %s: kept is %s', (never, always, when, expected) => {
    expect(
      kept({
        drop: [never ? hit : miss],
        keep: [always ? hit : miss],
        keepIf: when === undefined ? undefined : () => when,
      }),
    ).toBe(expected)
  })

  test('needs one matching entry of a list, at any position', () => {
    expect(kept({ drop: [miss, miss, hit] })).toBe(false)
    expect(kept({ drop: [hit, miss] })).toBe(false)
    expect(kept({ keep: [miss, hit], keepIf: () => false })).toBe(true)
  })

  test('does not call matchers that cannot change the result', () => {
    expect(kept({ drop: [hit], keep: [throws], keepIf: throws })).toBe(false)
    expect(kept({ drop: [hit, throws] })).toBe(false)
    let asked = 0
    const when = () => {
      asked += 1
      return false
    }
    expect(kept({ keep: [hit], keepIf: when })).toBe(true)
    expect(asked).toBe(0)
  })
})

describe('a matcher', () => {
  test('that is text matches the whole type and nothing less', () => {
    expect(kept({ drop: ['order.placed'] })).toBe(false)
    for (const text of ['order', 'placed', 'order.placed.v2', 'Order.Placed', '']) {
      expect(kept({ drop: [text] })).toBe(true)
    }
  })

  test('that is text is not a pattern', () => {
    expect(kept({ drop: ['order.*'] })).toBe(true)
  })

  test('that is a pattern matches anywhere, from the first character on', () => {
    expect(kept({ drop: [/^order/] })).toBe(false)
    expect(kept({ drop: [/placed/] })).toBe(false)
    expect(kept({ drop: [/^placed/] })).toBe(true)
    expect(kept({ drop: [/cancelled/] })).toBe(true)
  })

  test.each([/order/g, /order/y, /order/gy, /placed$/g])(
    'that is the pattern %s returns the same result every time',
    (pattern) => {
      const before = pattern.lastIndex
      const answers = [1, 2, 3, 4].map(() => kept({ drop: [pattern] }))
      expect(answers).toEqual([false, false, false, false])
      expect(pattern.lastIndex).toBe(before)
    },
  )

  test('that is a function receives the delivery and the failure', () => {
    const seen: DeadLetterCandidate[] = []
    const matcher = (candidate: DeadLetterCandidate) => {
      seen.push(candidate)
      return candidate.failure.class === 'unknown'
    }
    expect(isKept({ ...KEEP_ALL, drop: [matcher] }, CANDIDATE)).toBe(false)
    expect(
      isKept(
        { ...KEEP_ALL, drop: [matcher] },
        { ...CANDIDATE, failure: { ...FAILURE, class: 'schema' } },
      ),
    ).toBe(true)
    expect(seen[0]).toBe(CANDIDATE)
  })

  test.each<[unknown]>([[Promise.resolve(true)], ['yes'], [1], [{}]])(
    'that is a function matches when it returns true, not %o',
    (answer) => {
      const matcher = (() => answer) as Matcher
      expect(kept({ drop: [matcher] })).toBe(true)
      expect(kept({ keep: [matcher], keepIf: () => false })).toBe(false)
    },
  )

  test('matches the source when the message has no type, and only then', () => {
    expect(kept({ drop: ['orders'] }, { type: undefined })).toBe(false)
    expect(kept({ drop: [/^orders$/] }, { type: undefined })).toBe(false)
    expect(kept({ drop: ['orders'] }, { type: 'order.placed' })).toBe(true)
    expect(kept({ drop: [/^orders$/] }, { type: 'order.placed' })).toBe(true)
  })
})

describe('the predicate', () => {
  test('receives the candidate', () => {
    const filter = { ...KEEP_ALL, keepIf: (one: DeadLetterCandidate) => one === CANDIDATE }
    expect(isKept(filter, CANDIDATE)).toBe(true)
    expect(isKept(filter, { ...CANDIDATE })).toBe(false)
  })
})

describe('a filter that throws', () => {
  test.each<[string, Partial<DeadLetterFilter>]>([
    ['never', { drop: [throws] }],
    ['drop, although keep would not matter', { drop: [throws], keepIf: () => false }],
    ['drop, before a matcher that would match', { drop: [throws, 'order.placed'] }],
    ['keep', { keep: [throws], keepIf: () => false }],
    ['when', { keepIf: throws }],
  ])('keeps the message, because a loss is worse: %s', (_, filter) => {
    expect(kept(filter)).toBe(true)
  })
})

describe('isAlwaysKept', () => {
  const always = (...matchers: Matcher[]) =>
    isAlwaysKept({ ...KEEP_ALL, keep: matchers }, CANDIDATE)

  test('is true when one matcher of the list matches, and false by default', () => {
    expect(isAlwaysKept(KEEP_ALL, CANDIDATE)).toBe(false)
    expect(always('order.cancelled')).toBe(false)
    expect(always('order.cancelled', /^order/)).toBe(true)
    expect(always(() => true)).toBe(true)
  })

  test('does not depend on the rest of the filter', () => {
    const filter: DeadLetterFilter = {
      drop: ['order.placed'],
      keep: ['order.placed'],
      keepIf: () => false,
    }
    expect(isAlwaysKept(filter, CANDIDATE)).toBe(true)
    expect(isAlwaysKept({ ...filter, keep: [], keepIf: () => true }, CANDIDATE)).toBe(false)
  })

  test('is true when a matcher throws, because a loss is worse', () => {
    expect(always(throws)).toBe(true)
  })
})

describe('any filter', () => {
  test('applies drop, then keep, then keepIf, then keeps', () => {
    const verdict = fc.constantFrom<boolean | 'throws'>(true, false, 'throws')
    const matchers = fc.array(verdict, { maxLength: 4 })
    const returning = (answer: boolean | 'throws') => () =>
      answer === 'throws' ? throws() : answer
    fc.assert(
      fc.property(
        matchers,
        matchers,
        fc.option(verdict, { nil: undefined }),
        (never, always, when) => {
          const filter: DeadLetterFilter = {
            drop: never.map(returning),
            keep: always.map(returning),
            keepIf: when === undefined ? undefined : returning(when),
          }
          const decisive = [
            ...never.map((one) => (one === true ? false : one === 'throws' ? true : undefined)),
            ...always.map((one) => (one === false ? undefined : true)),
            when === undefined ? true : when === 'throws' ? true : when,
          ].find((one) => one !== undefined)
          expect(isKept(filter, CANDIDATE)).toBe(decisive)
        },
      ),
    )
  })
})
