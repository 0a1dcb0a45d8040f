import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Delivery, FIRST_CYCLE } from '../src/delivery.ts'
import type { Failure } from '../src/failure.ts'
import {
  type DeadLetterCandidate,
  type DeadLetterFilter,
  isAlwaysKept,
  isKept,
  KEEP_ALL,
  type Matcher,
} from '../src/filter.ts'

const DELIVERY: Delivery = {
  id: 'm1',
  source: 'orders',
  lane: undefined,
  key: 'm1',
  type: 'order.placed',
  bytes: new Uint8Array(),
  contentType: undefined,
  headers: {},
  cycle: FIRST_CYCLE,
  deliveryCount: 1,
  replayId: undefined,
  headerProblems: [],
}

const FAILURE: Failure = {
  class: 'unknown',
  signature: '1-aaaa',
  type: 'Error',
  code: undefined,
  message: 'no',
  retryAfterMs: undefined,
  timedOut: false,
  stack: undefined,
}

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

  test('cannot be changed by anyone', () => {
    expect(KEEP_ALL).toEqual({ never: [], always: [], when: undefined })
    expect(Object.isFrozen(KEEP_ALL)).toBe(true)
    expect(Object.isFrozen(KEEP_ALL.never)).toBe(true)
    expect(Object.isFrozen(KEEP_ALL.always)).toBe(true)
  })
})

describe('precedence', () => {
  const hit: Matcher = 'order.placed'
  const miss: Matcher = 'order.cancelled'

  test.each<[boolean, boolean, boolean | undefined, boolean]>([
    // never, always, when, kept
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
  ])('never %s, always %s, when %s: kept is %s', (never, always, when, expected) => {
    expect(
      kept({
        never: [never ? hit : miss],
        always: [always ? hit : miss],
        when: when === undefined ? undefined : () => when,
      }),
    ).toBe(expected)
  })

  test('needs one matcher of a list to match, wherever it stands', () => {
    expect(kept({ never: [miss, miss, hit] })).toBe(false)
    expect(kept({ never: [hit, miss] })).toBe(false)
    expect(kept({ always: [miss, hit], when: () => false })).toBe(true)
  })

  test('does not ask what can no longer matter', () => {
    expect(kept({ never: [hit], always: [throws], when: throws })).toBe(false)
    expect(kept({ never: [hit, throws] })).toBe(false)
    let asked = 0
    const when = () => {
      asked += 1
      return false
    }
    expect(kept({ always: [hit], when })).toBe(true)
    expect(asked).toBe(0)
  })
})

describe('a matcher', () => {
  test('that is text matches the whole type and nothing less', () => {
    expect(kept({ never: ['order.placed'] })).toBe(false)
    for (const text of ['order', 'placed', 'order.placed.v2', 'Order.Placed', '']) {
      expect(kept({ never: [text] })).toBe(true)
    }
  })

  test('that is text is no pattern', () => {
    expect(kept({ never: ['order.*'] })).toBe(true)
  })

  test('that is a pattern matches anywhere, from the first character on', () => {
    expect(kept({ never: [/^order/] })).toBe(false)
    expect(kept({ never: [/placed/] })).toBe(false)
    expect(kept({ never: [/^placed/] })).toBe(true)
    expect(kept({ never: [/cancelled/] })).toBe(true)
  })

  test.each([/order/g, /order/y, /order/gy, /placed$/g])(
    'that is the pattern %s answers the same every time',
    (pattern) => {
      const before = pattern.lastIndex
      const answers = [1, 2, 3, 4].map(() => kept({ never: [pattern] }))
      expect(answers).toEqual([false, false, false, false])
      expect(pattern.lastIndex).toBe(before)
    },
  )

  test('that is a function sees the delivery and the failure', () => {
    const seen: DeadLetterCandidate[] = []
    const matcher = (candidate: DeadLetterCandidate) => {
      seen.push(candidate)
      return candidate.failure.class === 'unknown'
    }
    expect(isKept({ ...KEEP_ALL, never: [matcher] }, CANDIDATE)).toBe(false)
    expect(
      isKept(
        { ...KEEP_ALL, never: [matcher] },
        { ...CANDIDATE, failure: { ...FAILURE, class: 'schema' } },
      ),
    ).toBe(true)
    expect(seen[0]).toBe(CANDIDATE)
  })

  test.each<[unknown]>([[Promise.resolve(true)], ['yes'], [1], [{}]])(
    'that is a function matches when it returns true, not %o',
    (answer) => {
      const matcher = (() => answer) as Matcher
      expect(kept({ never: [matcher] })).toBe(true)
      expect(kept({ always: [matcher], when: () => false })).toBe(false)
    },
  )

  test('matches the source when the message has no type, and only then', () => {
    expect(kept({ never: ['orders'] }, { type: undefined })).toBe(false)
    expect(kept({ never: [/^orders$/] }, { type: undefined })).toBe(false)
    expect(kept({ never: ['orders'] }, { type: 'order.placed' })).toBe(true)
    expect(kept({ never: [/^orders$/] }, { type: 'order.placed' })).toBe(true)
  })
})

describe('the predicate', () => {
  test('sees the candidate', () => {
    const filter = { ...KEEP_ALL, when: (one: DeadLetterCandidate) => one === CANDIDATE }
    expect(isKept(filter, CANDIDATE)).toBe(true)
    expect(isKept(filter, { ...CANDIDATE })).toBe(false)
  })
})

describe('a filter that throws', () => {
  test.each<[string, Partial<DeadLetterFilter>]>([
    ['never', { never: [throws] }],
    ['never, although always would not matter', { never: [throws], when: () => false }],
    ['never, before a matcher that would match', { never: [throws, 'order.placed'] }],
    ['always', { always: [throws], when: () => false }],
    ['when', { when: throws }],
  ])('keeps the message, because losing is worse than keeping: %s', (_, filter) => {
    expect(kept(filter)).toBe(true)
  })
})

describe('what is always kept', () => {
  const always = (...matchers: Matcher[]) =>
    isAlwaysKept({ ...KEEP_ALL, always: matchers }, CANDIDATE)

  test('is what one matcher of the list matches, and nothing by default', () => {
    expect(isAlwaysKept(KEEP_ALL, CANDIDATE)).toBe(false)
    expect(always('order.cancelled')).toBe(false)
    expect(always('order.cancelled', /^order/)).toBe(true)
    expect(always(() => true)).toBe(true)
  })

  test('does not depend on the rest of the filter', () => {
    const filter: DeadLetterFilter = {
      never: ['order.placed'],
      always: ['order.placed'],
      when: () => false,
    }
    expect(isAlwaysKept(filter, CANDIDATE)).toBe(true)
    expect(isAlwaysKept({ ...filter, always: [], when: () => true }, CANDIDATE)).toBe(false)
  })

  test('is what a broken matcher cannot tell, because losing is worse than keeping', () => {
    expect(always(throws)).toBe(true)
  })
})

describe('any filter', () => {
  test('follows never, then always, then when, then keeps', () => {
    const verdict = fc.constantFrom<boolean | 'throws'>(true, false, 'throws')
    const matchers = fc.array(verdict, { maxLength: 4 })
    const said = (answer: boolean | 'throws') => () => (answer === 'throws' ? throws() : answer)
    fc.assert(
      fc.property(
        matchers,
        matchers,
        fc.option(verdict, { nil: undefined }),
        (never, always, when) => {
          const filter: DeadLetterFilter = {
            never: never.map(said),
            always: always.map(said),
            when: when === undefined ? undefined : said(when),
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
