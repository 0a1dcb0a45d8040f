import { globSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { rewriteAmqplib } from './amqplib.ts'
import { rewriteKafkajs } from './kafkajs.ts'
import { LIBRARIES, type Library } from './libraries.ts'
import type { Proposal } from './proposal.ts'

/** A library of the project, with the files that import it. */
export interface FoundLibrary {
  readonly library: Library
  readonly name: string
  /** Relative to the folder of the project. */
  readonly files: readonly string[]
}

/** A source file with a consumer, and the proposal for it. */
export interface FoundConsumer {
  readonly file: string
  readonly before: string
  readonly proposal: Proposal
}

export interface Project {
  readonly libraries: readonly FoundLibrary[]
  readonly consumers: readonly FoundConsumer[]
}

interface SourceFile {
  readonly file: string
  readonly text: string
}

/** 2,000 files of 256 KiB: more than the services of a team have. Generated files are larger. */
const FILES_MAX = 2_000
const BYTES_MAX = 262_144
const SKIPPED = /^(node_modules|dist|build|coverage|\..+)$/

/** Reads the source files of a project. Changes nothing. */
export function readProject(cwd: string, dependencies: readonly string[]): Project {
  const sources = sourcesIn(cwd)
  const libraries = LIBRARIES.flatMap((library) => {
    const found = library.names.map((name) => ({
      library,
      name,
      files: importersOf(name, sources),
    }))
    return found
      .filter(({ name, files }) => files.length > 0 || dependencies.includes(name))
      .slice(0, 1)
  })
  const consumers = sources.flatMap(({ file, text }): readonly FoundConsumer[] => {
    const isTypeScript = file.endsWith('ts')
    const proposal = rewriteAmqplib(text, isTypeScript) ?? rewriteKafkajs(text, isTypeScript)
    return proposal === undefined ? [] : [{ file, before: text, proposal }]
  })
  return { libraries, consumers }
}

function sourcesIn(cwd: string): readonly SourceFile[] {
  const exclude = (path: string) => SKIPPED.test(path.split(/[\\/]/).at(-1) ?? '')
  return globSync('**/*.{js,mjs,cjs,ts,mts,cts}', { cwd, exclude })
    .filter((file) => !/\.d\.[cm]?ts$/.test(file))
    .toSorted()
    .slice(0, FILES_MAX)
    .flatMap((file) => readSource(cwd, file))
}

/** Reads a file. Folders such as `three.js`, links to missing files and unreadable files are skipped. */
function readSource(cwd: string, file: string): readonly SourceFile[] {
  const path = join(cwd, file)
  try {
    const found = statSync(path)
    if (!found.isFile() || found.size > BYTES_MAX) return []
    return [{ file, text: readFileSync(path, 'utf8') }]
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'EACCES' || code === 'EPERM' || code === 'ELOOP') return []
    throw error
  }
}

/** Returns the files that import a package, or a part of it. */
function importersOf(name: string, sources: readonly SourceFile[]): readonly string[] {
  const escaped = name.replaceAll(/[/.-]/g, String.raw`\$&`)
  const pattern = new RegExp(`(?:from|import|require\\()\\s*['"]${escaped}(?:/[^'"]*)?['"]`)
  return sources.flatMap(({ file, text }) => (pattern.test(text) ? [file] : []))
}
