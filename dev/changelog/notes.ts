/** Reads the notes in .changeset and writes them as Markdown, by package and by kind of change. */
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** The larger change first. */
const BUMPS = ['major', 'minor', 'patch'] as const
type Bump = (typeof BUMPS)[number]

/** The first word of a note and the title of its section, in the order of the sections. */
const KINDS = { Add: 'Added', Change: 'Changed', Remove: 'Removed', Fix: 'Fixed' } as const
type Kind = keyof typeof KINDS

/** 60 words: a reader scans dozens of notes. Reasons and details belong to the documentation. */
const MAX_WORDS = 60

export interface Note {
  /** Name of the file without its extension. */
  readonly id: string
  readonly kind: Kind
  readonly bumps: ReadonlyMap<string, Bump>
  /** One line. */
  readonly text: string
}

export interface ReadNotes {
  readonly notes: readonly Note[]
  /** One sentence for each problem. */
  readonly problems: readonly string[]
}

/** Reads all notes below `root` and checks that they name packages of the list. */
export function readNotes(root: string, packages: readonly string[]): ReadNotes {
  const paths = globSync('.changeset/*.md', { cwd: root })
    .filter((path) => basename(path) !== 'README.md')
    .sort()
  const read = paths.map((path) =>
    parseNote(path, readFileSync(join(root, path), 'utf8'), packages),
  )
  return {
    notes: read.flatMap(({ notes }) => notes),
    problems: read.flatMap(({ problems }) => problems),
  }
}

/** Reads one note: packages with their bumps between two lines of dashes, then the text. */
function parseNote(path: string, content: string, packages: readonly string[]): ReadNotes {
  const [, head = '', body = ''] = /^---\n([^]*?)^---\n([^]*)$/m.exec(content) ?? []
  const text = body.replaceAll(/\s+/g, ' ').trim()
  const kind = (Object.keys(KINDS) as Kind[]).find((one) => new RegExp(`^${one}\\b`).test(text))
  const words = text.split(' ').length
  const lines = head.split('\n').filter((line) => line !== '')
  const entries = lines.map((line) => parseBump(line, packages))
  const problems = [
    ...entries.flatMap((entry) => (typeof entry === 'string' ? [entry] : [])),
    ...(lines.length === 0 ? ['names no package; run `pnpm changeset` to create a note'] : []),
    ...(words > MAX_WORDS ? [`has ${words} words; use at most ${MAX_WORDS}`] : []),
    ...(kind === undefined ? [`must start with ${Object.keys(KINDS).join(', ')}`] : []),
  ]
  const bumps = new Map(entries.filter((entry) => typeof entry !== 'string'))
  const id = basename(path, '.md')
  return {
    notes: kind === undefined ? [] : [{ id, kind, bumps, text }],
    problems: problems.map((problem) => `${path} ${problem}`),
  }
}

/** Reads a line such as `'@redrive/core': minor`; returns a problem otherwise. */
function parseBump(line: string, packages: readonly string[]): readonly [string, Bump] | string {
  const [, name = '', type = ''] = /^(?:'|")?([^'":]+)(?:'|")?: *(\w+)$/.exec(line) ?? []
  const bump = BUMPS.find((one) => one === type)
  if (bump === undefined)
    return `has the line "${line}"; expected a package and ${BUMPS.join(', ')}`
  return packages.includes(name) ? [name, bump] : `names "${name}", which is not a public package`
}

/** Returns the notes of the coming release, by package. Packages with the largest change come first. */
export function nextRelease(notes: readonly Note[], packages: readonly string[]): string {
  const changed = packages
    .map((name) => ({ name, bump: bumpOf(notes, name) }))
    .filter(({ bump }) => bump !== undefined)
    .toSorted((one, other) => rank(one.bump) - rank(other.bump))
  const blocks = changed.map(({ name, bump }) => `## ${name} (${bump})\n\n${sections(notes, name)}`)
  return `${['# Next release', ...blocks].join('\n\n')}\n`
}

const rank = (bump: Bump | undefined) => (bump === undefined ? BUMPS.length : BUMPS.indexOf(bump))

function bumpOf(notes: readonly Note[], name: string): Bump | undefined {
  const bumps = notes.map(({ bumps: own }) => own.get(name))
  return BUMPS.find((one) => bumps.includes(one))
}

/** Returns the sections of one package: added, changed, removed, fixed. */
export function sections(notes: readonly Note[], name: string): string {
  const own = notes
    .filter(({ bumps }) => bumps.has(name))
    .toSorted((one, other) => rank(one.bumps.get(name)) - rank(other.bumps.get(name)))
  return Object.entries(KINDS)
    .map(([kind, title]) => ({
      title,
      lines: own.filter((note) => note.kind === kind).map(lineOf),
    }))
    .filter(({ lines }) => lines.length > 0)
    .map(({ title, lines }) => `### ${title}\n\n${lines.join('\n')}`)
    .join('\n\n')
}

/** Leaves out `Fix:`, because the title of the section has the same meaning. */
function lineOf({ text }: Note): string {
  const plain = text.replace(/^Fix: */, '')
  return `- ${plain.charAt(0).toUpperCase()}${plain.slice(1)}`
}

/** Returns a changelog with a new version at its top. `before` is the current content, if the file exists. */
export function addVersion(
  before: string | undefined,
  {
    name,
    version,
    text,
  }: { readonly name: string; readonly version: string; readonly text: string },
): string {
  const title = `# ${name}\n`
  const older = before?.startsWith(title) ? before.slice(title.length).trim() : before?.trim()
  const body = text === '' ? 'Only dependencies changed.' : text
  return `${[title.trim(), `## ${version}`, body, older ?? ''].filter((block) => block !== '').join('\n\n')}\n`
}
