import { resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { addVersion, nextRelease, readNotes, sections } from '../changelog/notes.ts'
import { publicPackages } from '../check/workspace.ts'
import { makeTree } from './tree.ts'

const PACKAGES = ['@redrive/core', '@redrive/kafka', 'redrive']

const note = (head: string, text: string) => `---\n${head}\n---\n\n${text}\n`

const read = (files: Record<string, string>) => {
  const paths = Object.entries(files).map(
    ([name, text]) => [`.changeset/${name}.md`, text] as const,
  )
  return readNotes(makeTree(Object.fromEntries(paths)), PACKAGES)
}

test('accepts the notes of the repository', () => {
  const root = resolve(import.meta.dirname, '../..')
  const names = publicPackages().map(({ name }) => name)
  expect(readNotes(root, names).problems).toEqual([])
})

describe('a note', () => {
  test('is rejected when it names an unknown package', () => {
    const { problems } = read({ one: note("'@redrive/cores': minor", 'Add it.') })
    expect(problems).toEqual([
      '.changeset/one.md names "@redrive/cores", which is not a public package',
    ])
  })

  test.each([
    ["'@redrive/core': large", 'Add it.', 'has the line "\'@redrive/core\': large"'],
    ['', 'Add it.', 'names no package'],
    ["'@redrive/core': minor", `Add ${'word '.repeat(60)}`, 'has 61 words; use at most 60'],
    ["'@redrive/core': minor", 'It is added.', 'must start with Add, Change, Remove, Fix'],
    ["'@redrive/core': minor", 'Adding it.', 'must start with Add, Change, Remove, Fix'],
  ])('is rejected: %j %j', (head, text, problem) => {
    expect(read({ one: note(head, text) }).problems).toEqual([expect.stringContaining(problem)])
  })

  test('may have 60 words', () => {
    const text = `Add ${'word '.repeat(59)}`
    expect(read({ one: note("'@redrive/core': minor", text) }).problems).toEqual([])
  })

  test('is not the README of the folder', () => {
    expect(read({ README: '# Change notes' })).toEqual({ notes: [], problems: [] })
  })
})

describe('the coming release', () => {
  const notesOf = () =>
    read({
      a: note("'@redrive/kafka': patch", 'Fix: it was\nslow. It is fast.'),
      b: note("'redrive': minor", 'Change the colour.'),
      c: note("'redrive': minor\n'@redrive/kafka': patch", 'Add a flag.'),
      d: note('redrive: major', 'Add a command.'),
    }).notes

  test('lists packages with the largest change first, and only changed packages', () => {
    const headings = nextRelease(notesOf(), PACKAGES).match(/^## .*$/gm)
    expect(headings).toEqual(['## redrive (major)', '## @redrive/kafka (patch)'])
  })

  test('has one section for each kind, with the largest change first', () => {
    expect(sections(notesOf(), 'redrive')).toBe(
      '### Added\n\n- Add a command.\n- Add a flag.\n\n### Changed\n\n- Change the colour.',
    )
  })

  test('writes a note on one line, and a fix without its first word', () => {
    expect(sections(notesOf(), '@redrive/kafka')).toBe(
      '### Added\n\n- Add a flag.\n\n### Fixed\n\n- It was slow. It is fast.',
    )
  })
})

describe('a changelog', () => {
  const release = { name: 'redrive', version: '0.2.0', text: '### Added\n\n- Add a flag.' }

  test('begins with the name of the package', () => {
    expect(addVersion(undefined, release)).toBe(
      '# redrive\n\n## 0.2.0\n\n### Added\n\n- Add a flag.\n',
    )
  })

  test('has the new version before the older ones', () => {
    const first = addVersion(undefined, release)
    expect(addVersion(first, { ...release, version: '0.2.1', text: '' })).toBe(
      `# redrive\n\n## 0.2.1\n\nOnly dependencies changed.\n\n${first.slice('# redrive\n\n'.length)}`,
    )
  })
})
