import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { EXIT } from '../src/exit.ts'
import { missingExtra, runWithExtra } from '../src/extras.ts'
import { VERSION } from '../src/version.ts'
import type { Io } from '../src/io.ts'

const notFound = (name: string) =>
  Object.assign(new Error(`Cannot find package '${name}' imported from /redrive/bundle/main.js`), {
    code: 'ERR_MODULE_NOT_FOUND',
  })

test('recognises each optional peer, in a version that the package accepts', () => {
  const peers = Object.keys(manifest.peerDependencies)
  expect(peers.map((name) => missingExtra(notFound(name))?.name)).toEqual(peers)
  expect(missingExtra(notFound('@platformatic/kafka'))?.range).toBe(
    manifest.peerDependencies['@platformatic/kafka'],
  )
  expect(manifest.version).toBe(VERSION)
})

test('ignores other packages and other errors', () => {
  expect(missingExtra(notFound('left-pad'))).toBeUndefined()
  expect(missingExtra(new Error("Cannot find package '@redrive/server'"))).toBeUndefined()
  expect(missingExtra(undefined)).toBeUndefined()
})

/** Runs a command with a package that an npm of this test downloads. Its program exits with 8. */
function runDownloaded(cache: string) {
  const npm = join(cache, '..', 'npm-cli.js')
  writeFileSync(
    npm,
    `const { mkdirSync, writeFileSync } = require('node:fs')
mkdirSync('node_modules/redrive/bundle', { recursive: true })
writeFileSync('node_modules/redrive/package.json', '{ "type": "module" }')
writeFileSync('node_modules/redrive/bundle/program.js', 'export const runProgram = async () => 8')`,
  )
  const io = {
    env: { XDG_CACHE_HOME: cache, npm_execpath: npm },
    ...{ stderr: { write: () => undefined, isTTY: false, columns: 100, hasColor: false } },
    ...{ now: Date.now, signal: new AbortController().signal },
  } as unknown as Io
  const extra = { name: '@redrive/server', range: '*', megabytes: 1 }
  return runWithExtra(io, extra, ['dev'])
}

function emptyFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-extras-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return folder
}

test('replaces a download that lost files', async () => {
  const cache = join(emptyFolder(), 'cache')
  mkdirSync(join(cache, 'redrive', `redrive-server-${VERSION}`, 'node_modules'), {
    recursive: true,
  })
  expect(await runDownloaded(cache)).toBe(8)
  expect(readdirSync(join(cache, 'redrive'))).toEqual([`redrive-server-${VERSION}`])
})

test('reports a cache folder that the user cannot write to, and how to choose another one', async () => {
  const cache = join(emptyFolder(), 'cache')
  writeFileSync(cache, '')
  await expect(runDownloaded(cache)).rejects.toMatchObject({
    exitCode: EXIT.failure,
    message: expect.stringMatching(
      /^Cannot store @redrive\/server in ".*Set XDG_CACHE_HOME to a folder that you may write to\.$/,
    ) as string,
  })
})
