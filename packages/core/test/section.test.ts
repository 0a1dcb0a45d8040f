import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { formatDuration, parseDuration } from '../src/duration.ts'
import { fillPlaceholders, readSection, type Section } from '../src/policy/section.ts'

/** Reads `input` with one function and returns its result and the problems. */
function reading<T>(input: unknown, question: (section: Section) => T, path = '') {
  const problems: string[] = []
  return { value: question(readSection(path, input, problems)), problems }
}

describe('a section of options', () => {
  test('returns the fallback for a missing field, without a problem', () => {
    const read = reading({}, (section) => [
      section.duration('a', 7),
      section.integer('b', 8, { min: 1, max: 9 }),
      section.number('c', 0.5, { min: 0, max: 1 }),
      section.choice('d', 'x', ['x', 'y']),
      section.raw('e'),
    ])
    expect(read).toEqual({ value: [7, 8, 0.5, 'x', undefined], problems: [] })
  })

  test('does not check a fallback against the bounds, because it is built in', () => {
    const read = reading({}, (section) => section.integer('a', 0, { min: 1, max: 9 }))
    expect(read).toEqual({ value: 0, problems: [] })
  })

  test.each<[unknown, number]>([
    [1, 1],
    [9, 9],
    [5, 5],
  ])('accepts the whole number %s', (value, expected) => {
    const read = reading({ a: value }, (section) => section.integer('a', 3, { min: 1, max: 9 }))
    expect(read).toEqual({ value: expected, problems: [] })
  })

  test.each<[unknown, string]>([
    [0, '0'],
    [10, '10'],
    [1.5, '1.5'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    ['5', "'5'"],
    [null, 'null'],
    [true, 'true'],
    [5n, '5'],
    [[], 'an array'],
    [{}, 'an object'],
    [() => 5, 'a function'],
    [Symbol('five'), 'Symbol(five)'],
  ])('rejects %s where a whole number is expected, and uses the fallback', (value, seen) => {
    const read = reading({ a: value }, (section) => section.integer('a', 3, { min: 1, max: 9 }))
    expect(read).toEqual({
      value: 3,
      problems: [`a: expected a whole number from 1 to 9, got ${seen}`],
    })
  })

  test('accepts a fraction where any number is expected', () => {
    const read = reading({ a: 1.5 }, (section) => section.number('a', 3, { min: 1, max: 9 }))
    expect(read).toEqual({ value: 1.5, problems: [] })
  })

  test.each([0.99, 9.01])('rejects the number %s outside its range', (value) => {
    const read = reading({ a: value }, (section) => section.number('a', 3, { min: 1, max: 9 }))
    expect(read).toEqual({
      value: 3,
      problems: [`a: expected a number from 1 to 9, got ${value}`],
    })
  })

  test.each<[unknown, number]>([
    ['1s', 1_000],
    ['2m', 120_000],
    [1_000, 1_000],
    [120_000, 120_000],
  ])('accepts the duration %s', (value, expected) => {
    const read = reading({ a: value }, (section) =>
      section.duration('a', 3, { min: 1_000, max: 120_000 }),
    )
    expect(read).toEqual({ value: expected, problems: [] })
  })

  test.each<[unknown, string]>([
    ['999ms', "'999ms'"],
    [120_001, '120001'],
    ['5 s', "'5 s'"],
    [null, 'null'],
  ])('rejects the duration %s', (value, seen) => {
    const read = reading({ a: value }, (section) =>
      section.duration('a', 3, { min: 1_000, max: 120_000 }),
    )
    expect(read).toEqual({
      value: 3,
      problems: [`a: expected a duration from 1s to 2m such as '250ms', '5s' or '2m', got ${seen}`],
    })
  })

  test('limits a duration to 0–366 days by default', () => {
    const check = (a: unknown) => reading({ a }, (section) => section.duration('a', 3))
    expect(check('0ms')).toEqual({ value: 0, problems: [] })
    expect(check('366d')).toEqual({ value: 31_622_400_000, problems: [] })
    expect(check('367d')).toEqual({
      value: 3,
      problems: [
        "a: expected a duration from 0ms to 366d such as '250ms', '5s' or '2m', got '367d'",
      ],
    })
    expect(check(31_622_400_001).problems).toHaveLength(1)
  })

  test('accepts one of the allowed words and lists them all for another', () => {
    const check = (a: unknown) => reading({ a }, (section) => section.choice('a', 'x', ['x', 'y']))
    expect(check('y')).toEqual({ value: 'y', problems: [] })
    expect(check('z')).toEqual({ value: 'x', problems: ["a: expected 'x' or 'y', got 'z'"] })
    expect(check(0)).toEqual({ value: 'x', problems: ["a: expected 'x' or 'y', got 0"] })
  })

  test('returns raw values that it cannot check itself', () => {
    const value = () => 1
    expect(reading({ a: value }, (section) => section.raw('a')).value).toBe(value)
  })

  test('reports a field with its whole path', () => {
    const read = reading({ b: { c: { d: 0 } } }, (section) => {
      const inner = section.section('b').section('c')
      inner.problem('e', 'is odd')
      return inner.integer('d', 1, { min: 1, max: 2 })
    })
    expect(read.problems).toEqual([
      'b.c.e: is odd',
      'b.c.d: expected a whole number from 1 to 2, got 0',
    ])
  })

  test.each<[unknown, string]>([
    [null, 'null'],
    [[], 'an array'],
    ['text', "'text'"],
    [1, '1'],
    [false, 'false'],
  ])('rejects %s instead of an object, and reads it as an empty one', (input, seen) => {
    const read = reading(input, (section) => section.duration('a', 7))
    expect(read).toEqual({ value: 7, problems: [`options: expected an object, got ${seen}`] })
    const inner = reading({ b: input }, (section) => section.section('b').duration('a', 7))
    expect(inner).toEqual({ value: 7, problems: [`b: expected an object, got ${seen}`] })
  })

  test('reads a missing section as an empty one', () => {
    const read = reading(undefined, (section) => section.section('b').duration('a', 7))
    expect(read).toEqual({ value: 7, problems: [] })
  })

  test('an optional section can be switched off', () => {
    const check = (b: unknown) =>
      reading({ b }, (section) => section.optional('b')?.duration('a', 7))
    expect(check('off')).toEqual({ value: undefined, problems: [] })
    expect(check({ a: 1 })).toEqual({ value: 1, problems: [] })
    expect(check(undefined)).toEqual({ value: 7, problems: [] })
  })

  test.each<[unknown, string]>([
    ['on', "'on'"],
    [null, 'null'],
    [[], 'an array'],
    [true, 'true'],
  ])('an optional section rejects %j and reads it as an empty one', (b, seen) => {
    const read = reading({ b }, (section) => section.optional('b')?.duration('a', 7), 'top')
    expect(read).toEqual({
      value: 7,
      problems: [`top.b: expected an object or 'off', got ${seen}`],
    })
  })

  test('an optional section reports its fields with their whole path', () => {
    const read = reading({ b: { a: 'x' } }, (section) => section.optional('b')?.duration('a', 7))
    expect(read.problems).toEqual([
      "b.a: expected a duration from 0ms to 366d such as '250ms', '5s' or '2m', got 'x'",
    ])
  })

  test('reports a key that was not read, with the known keys in order', () => {
    const read = reading({ zeta: 1, attempt: 5, alpha: 2 }, (section) => {
      section.raw('zeta')
      section.raw('attempts')
      section.raw('alpha')
      section.end()
    })
    expect(read.problems).toEqual(['attempt: unknown option; known options: alpha, attempts, zeta'])
  })

  test('reports a nested unknown key with its path', () => {
    const read = reading(
      { b: 1 },
      (section) => {
        section.raw('a')
        section.end()
      },
      'retry',
    )
    expect(read.problems).toEqual(['retry.b: unknown option; known options: a'])
  })

  test('reading a key is enough to make it known', () => {
    const read = reading({ a: 1, b: 1, c: 'x', d: {}, e: 'off', f: '1s' }, (section) => {
      section.integer('a', 1, { min: 0, max: 1 })
      section.number('b', 1, { min: 0, max: 1 })
      section.choice('c', 'x', ['x'])
      section.section('d')
      section.optional('e')
      section.duration('f', 1)
      section.end()
    })
    expect(read.problems).toEqual([])
  })

  test('reads inherited values, but none that every object inherits', () => {
    const input = Object.create({ a: 99 }) as object
    expect(reading(input, (section) => section.raw('a')).value).toBe(99)
    expect(reading({}, (section) => section.raw('constructor')).value).toBeUndefined()
  })

  test('reports a key called __proto__ like any other', () => {
    const input: unknown = JSON.parse('{"__proto__": {"a": 1}}')
    const read = reading(input, (section) => {
      const value = section.raw('a')
      section.end()
      return value
    })
    expect(read).toEqual({
      value: undefined,
      problems: ['__proto__: unknown option; known options: a'],
    })
  })
})

function filling(value: unknown, env: Record<string, string | undefined> = {}) {
  const problems: string[] = []
  return { value: fillPlaceholders(value, env, problems), problems }
}

describe('placeholders', () => {
  test('are filled from the environment, in every text at every depth', () => {
    const config = { a: '${A}', b: { c: ['x', '<${A}>', { d: '${A}-${B}' }] } }
    expect(filling(config, { A: 'one', B: 'two' })).toEqual({
      value: { a: 'one', b: { c: ['x', '<one>', { d: 'one-two' }] } },
      problems: [],
    })
  })

  test('keep everything else', () => {
    const when = () => true
    const pattern = /x/
    const config = { a: 1, b: null, c: true, d: 'plain', when, pattern }
    const filled = filling(config).value as typeof config
    expect(filled).toEqual(config)
    expect(filled.when).toBe(when)
    expect(filled.pattern).toBe(pattern)
  })

  test('do not change the input', () => {
    const config = Object.freeze({ a: '${A}', b: Object.freeze(['${A}']) })
    expect(filling(config, { A: 'one' }).value).toEqual({ a: 'one', b: ['one'] })
    expect(config).toEqual({ a: '${A}', b: ['${A}'] })
  })

  test('fall back to their default, which may be empty', () => {
    expect(filling('${A:-5s}').value).toBe('5s')
    expect(filling('<${A:-}>').value).toBe('<>')
    expect(filling('${A:-5s}', { A: '9s' }).value).toBe('9s')
  })

  test('without a value and without a default are a problem that explains the fix', () => {
    const filled = filling({ a: { b: ['x', '<${A}>'] } })
    expect(filled).toEqual({
      value: { a: { b: ['x', undefined] } },
      problems: ['a.b.1: environment variable "A" is not set; set it or add a default (${A:-…})'],
    })
  })

  test('an empty value counts as missing: the default replaces it, or it is a problem', () => {
    expect(filling('${A:-5s}', { A: '' })).toEqual({ value: '5s', problems: [] })
    expect(filling('${A:-}', { A: '' })).toEqual({ value: '', problems: [] })
    expect(filling({ a: '${A}' }, { A: '' })).toEqual({
      value: { a: undefined },
      problems: ['a: environment variable "A" is not set; set it or add a default (${A:-…})'],
    })
  })

  test('are never filled from the prototype of the environment', () => {
    const env = Object.create({ A: 'inherited' }) as Record<string, string>
    expect(filling('${A:-none}', env).value).toBe('none')
    expect(filling('${toString:-none}').value).toBe('none')
    expect(filling('${constructor}').problems).toHaveLength(1)
  })

  test('are filled in an object without a prototype too', () => {
    const bare = Object.assign(Object.create(null) as object, { a: '${A}' })
    expect(filling({ bare }, { A: 'one' })).toEqual({
      value: { bare: { a: 'one' } },
      problems: [],
    })
  })

  test('keep an object of a class', () => {
    class Own {
      readonly a = '${A}'
    }
    const own = new Own()
    expect(filling({ own }, { A: 'one' }).value).toEqual({ own })
    expect((filling({ own }).value as { own: Own }).own).toBe(own)
  })

  test('each missing one is listed', () => {
    expect(filling({ a: '${A}', b: '${B} ${C:-c}' }, { A: undefined }).problems).toEqual([
      'a: environment variable "A" is not set; set it or add a default (${A:-…})',
      'b: environment variable "B" is not set; set it or add a default (${B:-…})',
    ])
  })

  test.each<[string, unknown]>([
    ['5', 5],
    ['-5', -5],
    ['0.25', 0.25],
    ['12', 12],
    ['1.50', 1.5],
    ['5s', '5s'],
    ['x5', 'x5'],
    ['5x', '5x'],
    ['1.', '1.'],
    ['.5', '.5'],
    ['1e3', '1e3'],
    ['off', 'off'],
    ['true', true],
    ['false', false],
    ['True', 'True'],
    ['truer', 'truer'],
  ])('a text that is one placeholder of %j becomes %j', (text, expected) => {
    expect(filling('${A}', { A: text })).toEqual({ value: expected, problems: [] })
    expect(filling(`\${A:-${text}}`)).toEqual({ value: expected, problems: [] })
  })

  test('a number that was written as text stays text', () => {
    expect(filling('5').value).toBe('5')
  })

  test('a placeholder with text around it stays text', () => {
    expect(filling('${A}s', { A: '5' }).value).toBe('5s')
    expect(filling('${A}0', { A: '5' }).value).toBe('50')
    expect(filling('1${A}', { A: '5' }).value).toBe('15')
    expect(filling('${A}${B}', { A: '1', B: '5' }).value).toBe('15')
    expect(filling('${A}', { A: 'true' }).value).toBe(true)
    expect(filling('tr${A}', { A: 'ue' }).value).toBe('true')
  })

  test.each(['${}', '${1A}', '${A-x}', '${A B}', '$A', '{A}', '$${', '${A'])(
    'similar text is not a placeholder: %s',
    (text) => {
      expect(filling(text, { A: 'one' })).toEqual({ value: text, problems: [] })
    },
  )

  test('names may have digits and underscores', () => {
    expect(filling('${_A1_b}', { _A1_b: 'one' }).value).toBe('one')
  })

  test.each<[string, (inner: unknown) => unknown, string]>([
    ['objects', (inner) => ({ a: inner }), 'a.a.a…: nested deeper than 32 levels'],
    ['lists', (inner) => [inner], '0.0.0…: nested deeper than 32 levels'],
  ])('are filled 32 levels deep in %s, and deeper is a problem', (_, wrap, problem) => {
    const nested = (levels: number) => {
      let value: unknown = '${A}'
      for (let level = 0; level < levels; level += 1) value = wrap(value)
      return value
    }
    expect(filling(nested(33), { A: 'one' }).problems).toEqual([])
    expect(JSON.stringify(filling(nested(33), { A: 'one' }).value)).toContain('"one"')
    const tooDeep = filling(nested(34), { A: 'one' })
    expect(tooDeep.problems).toEqual([problem])
    expect(JSON.stringify(tooDeep.value)).not.toContain('one')
  })

  test('circular data is a problem and does not cause an endless loop', () => {
    const loop: Record<string, unknown> = { a: 1 }
    loop['again'] = loop
    expect(filling(loop).problems).toEqual(['again.again.again…: nested deeper than 32 levels'])
  })

  test('a key called __proto__ stays a key', () => {
    const filled = filling(JSON.parse('{"__proto__": {"a": "${A}"}}'), { A: 'one' }).value
    expect(Object.keys(filled as object)).toEqual(['__proto__'])
    expect(Object.getPrototypeOf(filled)).toBe(Object.prototype)
  })

  test('any plain data without placeholders comes back equal', () => {
    const noPlaceholder = fc.string().filter((text) => !text.includes('${'))
    const data = fc.anything({
      key: fc.string(),
      values: [noPlaceholder, fc.double(), fc.boolean()],
    })
    fc.assert(
      fc.property(data, (value) => {
        expect(filling(value)).toEqual({ value, problems: [] })
      }),
    )
  })
})

describe('a duration', () => {
  test.each<[unknown, number]>([
    ['250ms', 250],
    ['5s', 5_000],
    ['2m', 120_000],
    ['1h', 3_600_000],
    ['7d', 604_800_000],
    ['1.5s', 1_500],
    ['0s', 0],
    [0, 0],
    [1_234, 1_234],
  ])('%s is %s ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms)
  })

  test.each<[unknown]>([
    ['5'],
    ['s'],
    [''],
    ['5 s'],
    ['-5s'],
    ['5S'],
    ['5s '],
    [' 5s'],
    ['1.s'],
    ['.5s'],
    ['1,5s'],
    ['5w'],
    ['5ss'],
    ['1h30m'],
    [-1],
    [Number.NaN],
    [Number.POSITIVE_INFINITY],
    [null],
    [undefined],
    [true],
    [5n],
    [['5s']],
    [{}],
  ])('%s is invalid', (value) => {
    expect(parseDuration(value)).toBeUndefined()
  })

  test.each<[number, string]>([
    [0, '0ms'],
    [1, '1ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [1_001, '1001ms'],
    [59_000, '59s'],
    [60_000, '1m'],
    [90_000, '90s'],
    [3_600_000, '1h'],
    [5_400_000, '90m'],
    [86_400_000, '1d'],
    [1_209_600_000, '14d'],
  ])('%s ms is written %s, the shortest exact spelling', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  test('written durations can be parsed again', () => {
    fc.assert(
      fc.property(fc.nat({ max: 31_622_400_000 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms)
      }),
    )
  })
})
