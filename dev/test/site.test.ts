import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { EXPECTED, QUESTIONS, SECTIONS } from '../../docs/.vitepress/pages.ts'
import { ROOT } from '../check/workspace.ts'

const DOCS = join(ROOT, 'docs')
const listed = SECTIONS.flatMap(({ pages }) => pages.map(([, path]) => path))

test('every page of docs is in the menu of the site once', () => {
  const pages = globSync('{*,reference/*,decisions/*}.md', { cwd: DOCS })
    .map((path) => path.slice(0, -'.md'.length))
    .filter((path) => path !== 'index')
  expect(pages.filter((path) => !listed.includes(path))).toEqual([])
  expect(new Set(listed).size).toBe(listed.length)
})

test('every page in the menu exists, except those that are still to come', () => {
  const missing = listed.filter((path) => !existsSync(join(DOCS, `${path}.md`)))
  expect(missing.filter((path) => !EXPECTED.has(path))).toEqual([])
})

test.each(QUESTIONS)('"%s" has an answer one click from every page', (_, path, answer) => {
  expect(listed).toContain(path)
  if (EXPECTED.has(path) && !existsSync(join(DOCS, `${path}.md`))) return
  expect(readFileSync(join(DOCS, `${path}.md`), 'utf8')).toMatch(answer)
})
