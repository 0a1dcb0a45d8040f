import { describe, expect, it } from 'vitest'
import { DataError, type WrittenFamily } from '../src/families/held-out/family.ts'
import { pairFigures, worstOf } from '../src/families/held-out/pairs.ts'
import { parseFamilies, readHeldOut } from '../src/families/held-out/read.ts'
import { reportOf } from '../src/families/held-out/report.ts'

const heldOut = readHeldOut()

const BLOCK = `# A comment.

## missing-file
alike: files
class: integration
type: Error
numeric-code: 2
handler: import
event: file.received
message: no file {1}\\nin {2}
field: status = 404
field: path = {2}\\\\{1}
cause-code: ENOENT
cause: open {1}
stack: at read ({root}/src/read.ts:{line}:3)
- a.csv | inbox
- b.csv | \\e
`

/** The families of the set that look alike, by the name of their set. */
function alikeSets(): ReadonlyMap<string, readonly WrittenFamily[]> {
  const named = heldOut.filter(({ alike }) => alike !== undefined)
  return Map.groupBy(named, ({ alike }) => alike ?? '')
}

describe('the held-out families', () => {
  it('are at least 150, with ten messages each', () => {
    expect(heldOut.length).toBeGreaterThanOrEqual(150)
    expect(heldOut.filter(({ failures }) => failures.length !== 10)).toEqual([])
  })

  it('have different names', () => {
    expect(new Set(heldOut.map(({ name }) => name)).size).toBe(heldOut.length)
  })

  it('have at least 40 that look alike and differ in more than handler and event', () => {
    const sets = [...alikeSets().values()]
    expect(sets.flat().length).toBeGreaterThanOrEqual(40)
    for (const families of sets) {
      const places = families.flatMap(({ failures }) =>
        failures.map((f) => `${f.handler} ${f.event}`),
      )
      expect({ places: new Set(places).size, isSet: families.length > 1 }).toEqual({
        places: 1,
        isSet: true,
      })
    }
  })

  it('have a stack in about half of the messages', () => {
    const failures = heldOut.flatMap((family) => family.failures)
    const share = failures.filter(({ stack }) => stack !== undefined).length / failures.length
    expect(share).toBeGreaterThan(0.4)
    expect(share).toBeLessThan(0.6)
  })

  it('leave no slot or escape in a text', () => {
    const texts = heldOut.flatMap(({ failures }) =>
      failures.map((failure) => JSON.stringify(failure)),
    )
    expect(texts.filter((text) => /\{(\d+|root|line|lines:\d+)\}/.test(text))).toEqual([])
  })
})

describe('a data file', () => {
  it('gives the failures of each family', () => {
    const [family] = parseFamilies(BLOCK)
    expect(family).toMatchObject({ name: 'missing-file', alike: 'files' })
    expect(family?.failures).toHaveLength(2)
    expect(family?.failures[0]).toMatchObject({
      class: 'integration',
      type: 'Error',
      code: 2,
      message: 'no file a.csv\nin inbox',
      cause: { type: 'Error', code: 'ENOENT', message: 'open a.csv' },
      fields: { status: 404, path: 'inbox\\a.csv' },
      handler: 'import',
      event: 'file.received',
      isReported: false,
    })
    expect(family?.failures[0]?.stack).toMatch(/^ {4}at read \(\/app\/src\/read\.ts:\d+:3\)$/)
    expect(family?.failures[1]?.message).toBe('no file b.csv\nin ')
  })

  it.each([
    ['an unknown key', BLOCK.replace('handler:', 'handlr:'), /"handlr: import" has no known key/],
    ['a missing key', BLOCK.replace('event: file.received\n', ''), /no event/],
    ['an unknown class', BLOCK.replace('class: integration', 'class: bad'), /instead of "bad"/],
    ['a missing value', BLOCK.replace('- b.csv | \\e', '- b.csv'), /no value \{2\}/],
    ['a value without a slot', BLOCK.replace('| \\e', '| x | y'), /values without a slot/],
  ])('is rejected for %s', (_, text, reason) => {
    const parse = () => parseFamilies(text)
    expect(parse).toThrow(DataError)
    expect(parse).toThrow(reason)
  })
})

describe('the pairs', () => {
  // Two messages of "a" are together and share the group "x" with one of "b".
  const figures = pairFigures([
    { name: 'a', alike: 'ab', groups: ['x', 'x', 'y'] },
    { name: 'b', alike: 'ab', groups: ['x', 'z'] },
    { name: 'c', alike: undefined, groups: ['w', 'w'] },
  ])

  it('are split when messages of one family are in different groups', () => {
    expect(figures.split).toEqual({ pairs: 3, of: 5 })
    expect(figures.families.map(({ split }) => split.pairs)).toEqual([2, 1, 0])
    expect(figures.families.map(({ groups }) => groups)).toEqual([2, 2, 1])
  })

  it('are merged when messages of different families are in one group', () => {
    expect(figures.merged).toEqual({ pairs: 2, of: 16 })
    expect(figures.mergedAlike).toEqual({ pairs: 2, of: 6 })
    expect(figures.families.map(({ merged }) => merged)).toEqual([2, 2, 0])
    expect(figures.families.map(({ mergedWith }) => mergedWith)).toEqual([['b'], ['a'], []])
  })

  it('rank the families with the most wrong pairs first', () => {
    expect(worstOf(figures, 20).map(({ name }) => name)).toEqual(['a', 'b'])
    expect(worstOf(figures, 1).map(({ name }) => name)).toEqual(['a'])
  })
})

describe('the report', () => {
  it('has the figures and the worst families of a set', () => {
    const block = (name: string) =>
      `## ${name}\nalike: set\nclass: unknown\ntype: Error\nhandler: h\nevent: e\nmessage: lost {1}\n${'- x\n'.repeat(3)}`
    const report = reportOf(parseFamilies(`${block('one')}\n${block('two')}`))
    expect(report).toContain('2 families with 6 messages. 2 families are in 1 sets')
    expect(report).toContain('| split, all families | 0 of 6 | 0.000 % |')
    expect(report).toContain('| merged, families that look alike | 9 of 9 | 100.00 % |')
    expect(report).toContain('0 families are one group each, without another family.')
    expect(report).toContain('| one | 1 | 0 of 3 | 9 (two) | `lost x` |')
  })

  it('is the same in every run', () => {
    const first = (families: readonly WrittenFamily[]) => reportOf(families.slice(0, 25))
    expect(first(readHeldOut())).toBe(first(heldOut))
  })
})
