import { describe, expect, it } from 'vitest'
import { isRedriveError } from '../src/errors.ts'
import { FUNCTION, named, readOptions, type Section, withMethods } from '../src/policy/section.ts'

/** Returns the problems of these options; none when they are accepted. */
function problemsOf(input: unknown, read: (options: Section) => unknown): readonly string[] {
  try {
    readOptions('connect()', input, read)
    return []
  } catch (error) {
    if (!isRedriveError(error, 'POLICY_INVALID')) throw error
    return error.problems
  }
}

const URL = { ...named('an address'), isSecret: true, variables: ['QUEUE_URL', 'BROKER_URL'] }

describe('options of a call', () => {
  it('are returned as read when all are valid', () => {
    const read = (options: Section) => ({ name: options.required<string>('name', named('a name')) })
    expect(readOptions('connect()', { name: 'orders' }, read)).toEqual({ name: 'orders' })
  })

  it('with mistakes end in one error that names the call and lists every mistake', () => {
    const input = { name: '', size: 'big', typo: 1 }
    const read = (options: Section) => {
      options.required('name', named('the name of a queue'))
      options.integer('size', 1, { min: 1, max: 9 })
    }
    let error: unknown
    try {
      readOptions('connect()', input, read)
    } catch (thrown) {
      error = thrown
    }
    expect(error).toMatchObject({
      code: 'POLICY_INVALID',
      message:
        'The options of connect() are invalid:\n' +
        `- name: expected the name of a queue, got ''\n` +
        `- size: expected a whole number from 1 to 9, got 'big'\n` +
        '- typo: unknown option; known options: name, size',
      problems: [
        `name: expected the name of a queue, got ''`,
        `size: expected a whole number from 1 to 9, got 'big'`,
        'typo: unknown option; known options: name, size',
      ],
    })
  })
})

describe('a required option', () => {
  const required = (input: unknown, check = named('a name')) =>
    problemsOf(input, (options) => options.required('name', check))

  it('that is absent is reported as nothing, an undefined value as undefined', () => {
    expect(required({})).toEqual(['name: expected a name, got nothing'])
    expect(required({ name: undefined })).toEqual(['name: expected a name, got undefined'])
  })

  it.each([7, null, {}, [], ''])('that is %j is no name', (name) => {
    expect(required({ name })).toHaveLength(1)
  })

  it('can be any text that is not empty', () => {
    expect(required({ name: 'Stryker was here!' })).toEqual([])
    expect(required({ name: ' ' })).toEqual([])
  })

  it('that is a secret is not shown', () => {
    const check = { ...URL, isValid: () => false }
    expect(required({ name: 'amqp://guest:pass@host' }, check)).toEqual([
      'name: expected an address, got another text',
    ])
    expect(required({ name: 7 }, check)).toEqual(['name: expected an address, got 7'])
  })

  it('that is unset names the variables that are probably not set', () => {
    const hint = '; probably the environment variable QUEUE_URL or BROKER_URL is not set'
    expect(required({ name: undefined }, URL)).toEqual([
      `name: expected an address, got undefined${hint}`,
    ])
    expect(required({ name: '' }, URL)).toEqual([`name: expected an address, got ''${hint}`])
    expect(required({}, URL)).toEqual(['name: expected an address, got nothing'])
    const list = { ...URL, isValid: () => false }
    expect(required({ name: ['a', ''] }, list)[0]).toContain(hint)
    expect(required({ name: ['a', 'b'] }, list)[0]).not.toContain('variable')
    expect(required({ name: undefined })[0]).not.toContain('variable')
  })
})

describe('an option that may be absent', () => {
  const given = (input: unknown) =>
    problemsOf(input, (options) => options.ifGiven('handler', FUNCTION))

  it('is checked only when it is given', () => {
    expect(given({})).toEqual([])
    expect(given({ handler: undefined })).toEqual([])
    expect(given({ handler: () => undefined })).toEqual([])
    expect(given({ handler: 'name' })).toEqual([`handler: expected a function, got 'name'`])
  })
})

describe('an object with methods', () => {
  const { isValid, expected } = withMethods('a logger', ['warn', 'error'])
  const method = () => undefined

  it('has all of them', () => {
    expect(expected).toBe('a logger')
    expect(isValid({ warn: method, error: method })).toBe(true)
    expect(isValid({ warn: method })).toBe(false)
    expect(isValid({ warn: method, error: 'text' })).toBe(false)
    expect(isValid({})).toBe(false)
  })

  it('can be a function that has them, and nothing else', () => {
    expect(isValid(Object.assign(() => undefined, { warn: method, error: method }))).toBe(true)
    expect(isValid(() => undefined)).toBe(false)
    for (const value of [undefined, null, 'text', 7]) expect(isValid(value)).toBe(false)
    expect(withMethods('anything', []).isValid('text')).toBe(false)
  })
})
