import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { FILTER_FIELDS, isBoundedFilter, parseFilter } from '../src/filter.ts'

const page = readFileSync(new URL('../../../docs/filters.md', import.meta.url), 'utf8')

/** Returns the lines of each code block with this language. */
const blocks = (language: string) =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, 'gms'))].flatMap(
    ([, text = '']) => text.trim().split('\n'),
  )

test('docs/filters.md has every field with its description and example', () => {
  const rows = FILTER_FIELDS.map(
    ({ name, description, example, isBound }) =>
      `| \`${name}\` | ${description} | \`${example}\` | ${isBound === true ? 'yes' : ''} |`,
  )
  const table = page.split('\n').filter((line) => line.startsWith('| `'))
  expect(table).toEqual(rows)
})

test('every example of docs/filters.md is a valid, bounded filter', () => {
  const examples = blocks('filter')
  expect(examples.length).toBeGreaterThan(7)
  for (const example of examples) expect(isBoundedFilter(parseFilter(example, 0))).toBe(true)
})
