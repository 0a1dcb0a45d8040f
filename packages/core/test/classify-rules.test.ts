import { describe, expect, test } from 'vitest'
import { type ClassifyOptions, classify, diagnose } from '../src/classify/classify.ts'
import {
  business,
  type ErrorPattern,
  integration,
  type Rule,
  schema,
  transient,
} from '../src/classify/rules.ts'

class CardDeclined extends Error {}
class LimitReached extends CardDeclined {}
class RateLimited extends Error {}

function options(rules: readonly Rule[]): ClassifyOptions {
  return { rules, handler: 'orders', includeStack: false, now: 0 }
}

function classOf(error: unknown, ...rules: readonly Rule[]): string {
  return classify(error, options(rules)).class
}

describe('classes', () => {
  test('each constructor sets its class', () => {
    const made = [transient, business, schema, integration].map((rule) => rule(CardDeclined).class)
    expect(made).toEqual(['transient', 'business', 'schema', 'integration'])
  })

  test('an error class matches its errors and their subclasses, and no others', () => {
    const rules = [business(CardDeclined), transient(RateLimited)]
    expect(classOf(new CardDeclined('no'), ...rules)).toBe('business')
    expect(classOf(new LimitReached('no'), ...rules)).toBe('business')
    expect(classOf(new RateLimited('slow'), ...rules)).toBe('transient')
    expect(classOf(new Error('no'), ...rules)).toBe('unknown')
  })

  test('Error itself is a class, not a predicate', () => {
    expect(classOf(new TypeError('no'), integration(Error))).toBe('integration')
    expect(classOf('not an error', integration(Error))).toBe('unknown')
  })

  test('one rule may list several matches, any of which is enough', () => {
    const rule = business(RateLimited, CardDeclined, { code: 'OUT_OF_STOCK' })
    expect(classOf(new CardDeclined('no'), rule)).toBe('business')
    expect(classOf({ code: 'OUT_OF_STOCK' }, rule)).toBe('business')
    expect(classOf(new Error('no'), rule)).toBe('unknown')
  })

  test('a rule written as data may contain one match without a list', () => {
    expect(classOf({ code: 'X' }, { class: 'schema', when: { code: 'X' } })).toBe('schema')
    expect(classOf({ code: 'X' }, { class: 'unknown', when: [{ code: 'X' }] })).toBe('unknown')
  })
})

describe('order', () => {
  test('the first rule that matches wins', () => {
    const error = new LimitReached('no')
    expect(classOf(error, business(LimitReached), transient(CardDeclined))).toBe('business')
    expect(classOf(error, transient(CardDeclined), business(LimitReached))).toBe('transient')
  })

  test('rules win over the built-in tables, and do not change the facts', () => {
    const error = Object.assign(new Error('no'), { code: 'ETIMEDOUT' })
    const { failure, rule } = diagnose(error, options([schema(RateLimited), business(Error)]))
    expect(failure).toMatchObject({ class: 'business', code: 'ETIMEDOUT', timedOut: true })
    expect(rule).toBe(1)
  })

  test('no rule is reported without a match', () => {
    const { rule, ruleProblems } = diagnose(new Error('no'), options([business(CardDeclined)]))
    expect(rule).toBeUndefined()
    expect(ruleProblems).toEqual([])
  })

  test('a rule is tried on the causes too', () => {
    const wrapped = new Error('charge failed', { cause: new CardDeclined('no') })
    const many = new AggregateError([new Error('other'), new CardDeclined('no')], 'all failed')
    expect(classOf(wrapped, business(CardDeclined))).toBe('business')
    expect(classOf(many, business(CardDeclined))).toBe('business')
  })
})

describe('patterns', () => {
  const failed = Object.assign(new CardDeclined('no'), {
    code: '23505',
    severity: 'E',
    status: 409,
  })

  test.each<[ErrorPattern, boolean]>([
    [{ code: '23505' }, true],
    [{ code: 'SQLSTATE 23505' }, true],
    [{ code: '23506' }, false],
    [{ code: ['A', '23505'] }, true],
    [{ code: ['A', 'B'] }, false],
    [{ code: [] }, false],
    [{ status: 409 }, true],
    [{ status: 408 }, false],
    [{ status: 410 }, false],
    [{ status: [409, 500] }, true],
    [{ status: [400, 409] }, true],
    [{ status: [410, 500] }, false],
    [{ status: [400, 408] }, false],
    [{ type: 'CardDeclined' }, true],
    [{ type: 'Error' }, false],
    [{ code: '23505', status: 409, type: 'CardDeclined' }, true],
    [{ code: 'A', status: 409, type: 'CardDeclined' }, false],
    [{ code: '23505', status: 500, type: 'CardDeclined' }, false],
    [{ code: '23505', status: 409, type: 'Error' }, false],
    [{}, false],
  ])('%j matches: %s', (pattern, expected) => {
    expect(classOf(failed, transient(pattern))).toBe(expected ? 'transient' : 'business')
  })

  test('a status never matches an error without one', () => {
    expect(classOf(new Error('no'), business({ status: [0, 999] }))).toBe('unknown')
  })

  test.each([
    [99, 'unknown'],
    [100, 'business'],
    [599, 'business'],
    [600, 'unknown'],
  ])('%s is an HTTP status: %s', (status, expected) => {
    expect(classOf({ status }, business({ status: [0, 999] }))).toBe(expected)
  })

  test('all fields must match the same error of a chain', () => {
    const chain = Object.assign(new Error('no', { cause: { status: 404 } }), { code: 'A' })
    expect(classOf(chain, business({ code: 'A', status: 404 }))).toBe('integration')
  })
})

describe('predicates', () => {
  test('true matches and false does not', () => {
    expect(
      classOf(
        'teapot',
        business((error) => error === 'teapot'),
      ),
    ).toBe('business')
    expect(
      classOf(
        'kettle',
        business((error) => error === 'teapot'),
      ),
    ).toBe('unknown')
  })

  test('a predicate that throws counts as no match, and is reported with its index', () => {
    const broken = business(() => {
      throw new TypeError('x is undefined')
    })
    const rules = [transient(RateLimited), broken, schema(CardDeclined)]
    const { failure, rule, ruleProblems } = diagnose(new CardDeclined('no'), options(rules))
    expect(failure).toMatchObject({ class: 'schema', message: 'no' })
    expect(rule).toBe(2)
    expect(ruleProblems).toEqual(['classify[1]: the predicate threw TypeError: x is undefined'])
  })

  test('a predicate that throws is reported although another match of its rule matches', () => {
    const rule = business(() => {
      throw new Error('broken')
    }, CardDeclined)
    const diagnosis = diagnose(new CardDeclined('no'), options([rule]))
    expect(diagnosis.failure.class).toBe('business')
    expect(diagnosis.ruleProblems).toEqual(['classify[0]: the predicate threw Error: broken'])
  })

  test('a predicate that throws for every error of a chain is reported once, within bounds', () => {
    const rule = business(() => {
      throw new Error('x'.repeat(1000))
    })
    const chain = new Error('a', { cause: new Error('b') })
    const { ruleProblems } = diagnose(chain, options([rule]))
    expect(ruleProblems).toHaveLength(1)
    expect(ruleProblems[0]).toHaveLength(200)
  })

  test('an async predicate would match everything, so it matches nothing and is reported', () => {
    const slow = (() => Promise.resolve(true)) as unknown as (error: unknown) => boolean
    const { failure, ruleProblems } = diagnose('teapot', options([business(slow)]))
    expect(failure.class).toBe('unknown')
    expect(ruleProblems).toEqual([
      'classify[0]: the predicate returned an object instead of true or false',
    ])
  })

  test.each([
    ['text', 'business'],
    ['', 'unknown'],
    [null, 'unknown'],
    [undefined, 'unknown'],
    [1, 'business'],
  ])('a result of %j from plain JavaScript means %s', (answer, expected) => {
    const loose = (() => answer) as unknown as (error: unknown) => boolean
    const { failure, ruleProblems } = diagnose('teapot', options([business(loose)]))
    expect(failure.class).toBe(expected)
    expect(ruleProblems).toEqual([])
  })

  test('a class that is not an error class is reported and does not match', () => {
    class Money {}
    const rule = business(Money as unknown as (error: unknown) => boolean)
    const { failure, ruleProblems } = diagnose(new Money(), options([rule]))
    expect(failure.class).toBe('unknown')
    expect(ruleProblems[0]).toContain('classify[0]: the predicate threw TypeError')
  })
})
