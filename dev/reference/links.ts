/** Checks links to headings of the reference pages. A renamed type or code renames its heading. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { anchorsOf } from './markdown.ts'
import type { GeneratedPage } from './pages.ts'

const DOCUMENTS = ['*.md', 'docs/**/*.md', 'packages/{*,*/*}/README.md']

/** Returns one sentence for each link to a heading that its page does not have. */
export function brokenLinks(
  root: string,
  pages: readonly Pick<GeneratedPage, 'path' | 'text'>[],
): readonly string[] {
  const anchors = new Map(pages.map(({ path, text }) => [path, new Set(anchorsIn(text))]))
  return globSync(DOCUMENTS, { cwd: root })
    .filter((path) => !anchors.has(path) && !path.includes('node_modules'))
    .sort()
    .flatMap((path) =>
      linksIn(readFileSync(join(root, path), 'utf8')).flatMap(({ to, anchor }) => {
        const known = anchors.get(normalize(join(dirname(path), to)))
        if (known === undefined || known.has(anchor)) return []
        return [`${path}: the link ${to}#${anchor} names a heading that does not exist`]
      }),
    )
}

function anchorsIn(text: string): readonly string[] {
  const headings = [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading)
  return anchorsOf(headings)
}

const linksIn = (text: string) =>
  [...text.matchAll(/\]\(([^()\s#]+\.md)#([^()\s]+)\)/g)].map(([, to = '', anchor = '']) => ({
    to,
    anchor,
  }))
