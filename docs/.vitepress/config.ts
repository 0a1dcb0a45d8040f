import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { defineConfig } from 'vitepress'
import { anchorsOf } from '../../dev/reference/markdown.ts'
import { SECTIONS } from './pages.ts'

const DOCS = join(import.meta.dirname, '..')
const ROOT = join(DOCS, '..')
const SOURCE = 'https://github.com/redrive/redrive/blob/main/'

const LISTED = new Set(SECTIONS.flatMap(({ pages }) => pages.map(([, path]) => path)))
const MORE = globSync('*.md', { cwd: DOCS })
  .map((file) => file.slice(0, -'.md'.length))
  .filter((path) => path !== 'index' && !LISTED.has(path))
  .map((path) => [titleOf(path), path] as const)
const MENU = MORE.length === 0 ? SECTIONS : [...SECTIONS, { title: 'More', pages: MORE }]

/** Returns the first heading of a page. */
function titleOf(path: string): string {
  return /^# (.*)$/m.exec(readFileSync(join(DOCS, `${path}.md`), 'utf8'))?.[1] ?? path
}

const addressOf = (path: string) => `/${path.replace(/README$/, '')}`

interface Token {
  readonly type: string
  readonly content: string
  tag: string
  readonly children: readonly Token[] | null
  attrGet(name: string): string | null
  attrSet(name: string, value: string): void
}

/** Returns another address for a link, if the site needs one: a file outside docs/ is in the repository. Pages refer to it by a relative path, as GitHub does. */
function siteAddress(page: string, href: string): string | undefined {
  if (/^([a-z]+:|#|\/)/.test(href)) return undefined
  const [path = '', anchor] = href.split('#')
  const target = normalize(join(DOCS, dirname(page), path))
  // GitHub shows README.md for a folder, the site index.md.
  if (!relative(DOCS, target).startsWith('..')) return href.replace(/README\.md(?=#|$)/, 'index.md')
  if (!existsSync(target)) throw new Error(`${page}: the link ${href} leads to no file`)
  return `${SOURCE}${relative(ROOT, target)}${anchor === undefined ? '' : `#${anchor}`}`
}

/** Makes empty header cells ordinary cells. Screen readers announce an empty header. */
function plainCells(tokens: readonly Token[]): void {
  for (const [at, { type, content }] of tokens.entries()) {
    const [before, after] = [tokens[at - 1], tokens[at + 1]]
    if (type !== 'inline' || content !== '' || before?.type !== 'th_open' || after === undefined)
      continue
    before.tag = 'td'
    after.tag = 'td'
  }
}

/** Writes each page as text, and their list for programs. */
function writeTexts(to: string): void {
  const lines = ['# Redrive', '', '> Failure handling for event-driven TypeScript systems.', '']
  for (const { title, pages } of MENU) {
    lines.push(`## ${title}`, '')
    for (const [name, path] of pages) lines.push(`- [${name}](/${path}.md)`)
    lines.push('')
  }
  writeFileSync(join(to, 'llms.txt'), lines.join('\n'))
  for (const page of globSync('{*,reference/*,decisions/*}.md', { cwd: DOCS })) {
    mkdirSync(dirname(join(to, page)), { recursive: true })
    writeFileSync(join(to, page), readFileSync(join(DOCS, page), 'utf8'))
  }
}

export default defineConfig({
  title: 'Redrive',
  description: 'Failure handling for event-driven TypeScript systems',
  lang: 'en',
  outDir: join(ROOT, '.reports/site'),
  cacheDir: join(ROOT, '.reports/site-cache'),
  cleanUrls: true,
  // No icon. Without this line, each browser requests one.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  // An address of a program on the machine of the reader. All other dead links fail the build.
  ignoreDeadLinks: 'localhostLinks',
  rewrites: {
    'reference/README.md': 'reference/index.md',
    'decisions/README.md': 'decisions/index.md',
  },
  markdown: {
    // The anchors of GitHub, which links in the pages use.
    anchor: { slugify: (heading) => anchorsOf([heading])[0] ?? '' },
    config(md) {
      md.core.ruler.push('empty-headers', ({ tokens }) => plainCells(tokens as readonly Token[]))
      md.core.ruler.push('source-links', ({ tokens, env }) => {
        const { relativePath } = env as { readonly relativePath: string }
        for (const token of (tokens as readonly Token[]).flatMap(
          ({ children }) => children ?? [],
        )) {
          const href = token.type === 'link_open' ? token.attrGet('href') : null
          const address = href === null ? undefined : siteAddress(relativePath, href)
          if (address !== undefined) token.attrSet('href', address)
        }
      })
    },
  },
  themeConfig: {
    search: { provider: 'local', options: { detailedView: true } },
    outline: [2, 3],
    nav: [
      { text: 'Get started', link: '/get-started' },
      { text: 'Reference', link: '/reference/' },
    ],
    sidebar: MENU.map(({ title, pages }) => ({
      text: title,
      collapsed: title === 'Decisions',
      items: pages.map(([text, path]) => ({ text, link: addressOf(path) })),
    })),
  },
  buildEnd: ({ outDir }) => writeTexts(outDir),
})
