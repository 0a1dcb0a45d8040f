import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { QUESTIONS, SECTIONS } from '../../docs/.vitepress/pages.ts'
import { ROOT } from '../check/workspace.ts'

const DOCS = join(ROOT, 'docs')
const listed = SECTIONS.flatMap(({ pages }) => pages.map(([, path]) => path))

test('the menu has each page once', () => {
  expect(new Set(listed).size).toBe(listed.length)
})

test('every page of the reference and of the decisions has a place in the menu', () => {
  const pages = globSync('{reference,decisions}/*.md', { cwd: DOCS })
  expect(pages.filter((path) => !listed.includes(path.slice(0, -'.md'.length)))).toEqual([])
})

test('every page in the menu exists', () => {
  expect(listed.filter((path) => !existsSync(join(DOCS, `${path}.md`)))).toEqual([])
})

test.each(QUESTIONS)('"%s" has an answer one click from every page', (_, path, answer) => {
  expect(listed).toContain(path)
  expect(readFileSync(join(DOCS, `${path}.md`), 'utf8')).toMatch(answer)
})
