/**
 * `pnpm reference` writes docs/reference/*.md from the code. With `--check` it writes nothing and fails when a page
 * differs. Run it with `--conditions=@redrive/source`: it needs no build.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isMain, ROOT } from '../check/workspace.ts'
import { brokenLinks } from './links.ts'
import { type GeneratedPage, generatePages } from './pages.ts'

/** Returns one sentence for each missing description, outdated page and broken link to a page. */
export function checkPages(root: string, pages: readonly GeneratedPage[]): readonly string[] {
  const problems = pages.flatMap(({ path, text, problems: own }) => {
    const file = join(root, path)
    const isCurrent = existsSync(file) && readFileSync(file, 'utf8') === text
    return isCurrent ? own : [...own, `${path} is not up to date; run pnpm reference`]
  })
  return [...problems, ...brokenLinks(root, pages)]
}

function writePages(root: string, pages: readonly GeneratedPage[]): readonly string[] {
  for (const { path, text } of pages) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }
  return checkPages(root, pages)
}

if (isMain(import.meta)) {
  const pages = generatePages(ROOT)
  const isCheck = process.argv.includes('--check')
  const problems = isCheck ? checkPages(ROOT, pages) : writePages(ROOT, pages)
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
}
