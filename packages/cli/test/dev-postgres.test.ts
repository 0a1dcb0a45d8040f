import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accountsFor } from '../src/dev/account.ts'
import { type Binaries, findBinaries } from '../src/dev/binaries.ts'
import { claimDatabase } from '../src/dev/claim-database.ts'
import { ATTACHED, clearFolder, type DevFolder, lockFolder, readFolder } from '../src/dev/folder.ts'
import { hasLeftover, stopLeftover } from '../src/dev/leftover.ts'
import { currentPlatform, packageFor } from '../src/dev/platforms.ts'
import { createCluster, type DevDatabase, startPostgres } from '../src/dev/postgres.ts'
import { runPostgresProgram } from '../src/dev/run-program.ts'

const root = mkdtempSync(join(tmpdir(), 'redrive-dev-postgres-'))
// The user that runs PostgreSQL must be able to enter it.
chmodSync(root, 0o755)
const { signal } = new AbortController()
/** 3 min: the tests of other packages run at the same time. */
const LONG = { timeout: 180_000 }

let folders = 0
function devFolder(): DevFolder {
  const folder = join(root, String(folders++))
  mkdirSync(folder)
  const locked = lockFolder(folder)
  const created = readFolder(locked)
  locked.release()
  return created
}

function installed(folder: DevFolder): Binaries {
  const found = findBinaries(packageFor(currentPlatform()), accountsFor(folder.path, {}), {})
  if (found === undefined) throw new Error('The package with the binaries is not installed.')
  return found
}

let folder: DevFolder
let binaries: Binaries
let database: DevDatabase
beforeAll(async () => {
  folder = devFolder()
  binaries = installed(folder)
  await createCluster(folder, binaries)
  database = await startPostgres(folder, binaries, signal)
}, LONG.timeout)
afterAll(async () => {
  await database.stop()
  rmSync(root, { recursive: true, force: true })
}, LONG.timeout)

async function run(url: string, sql: string): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query(sql)
  await client.end()
}

describe('a database of the user', LONG, () => {
  test('is refused with tables of Redrive, except those of an earlier start', async () => {
    await run(database.url, 'create database used')
    await run(database.url, 'create database empty')
    const used = database.url.replace(/postgres$/, 'used')
    const empty = database.url.replace(/postgres$/, 'empty')
    await run(used, 'create schema redrive_catalog')
    await expect(claimDatabase(devFolder(), used)).rejects.toThrow(
      /\/used" already has tables of Redrive \(schema redrive_catalog\).*Nothing was changed.*--database/,
    )
    const first = devFolder()
    await claimDatabase(first, empty)
    await run(empty, 'create schema redrive')
    await claimDatabase(first, empty)
    const locked = lockFolder(first.path)
    clearFolder(locked)
    locked.release()
    await claimDatabase(first, empty)
    await expect(claimDatabase(devFolder(), empty)).rejects.toThrow('already has tables')
    await expect(claimDatabase(devFolder(), 'shop')).rejects.toThrow('--database: expected')
  })
})

const dataOf = ({ path }: DevFolder) => join(path, 'postgres')

/** Returns the ids of the processes whose arguments contain a text. */
function processesWith(text: string): readonly string[] {
  return readdirSync('/proc').filter((id) => {
    const file = join('/proc', id, 'cmdline')
    return /^\d+$/.test(id) && existsSync(file) && readFileSync(file, 'utf8').includes(text)
  })
}

describe('a PostgreSQL that a killed process has left', LONG, () => {
  test('is left alone when its state is unknown', async () => {
    const [version, hidden] = ['PG_VERSION', 'hidden'].map((name) => join(dataOf(folder), name))
    renameSync(version ?? '', hidden ?? '')
    try {
      await expect(stopLeftover(folder, binaries)).rejects.toThrow(
        /Cannot check whether a PostgreSQL uses .*nothing was changed[\s\S]*delete ".*postmaster.pid"/,
      )
    } finally {
      renameSync(hidden ?? '', version ?? '')
    }
  })

  test('is not stopped through a copy of its folder', async () => {
    const copy = { ...folder, path: join(root, 'copy') }
    mkdirSync(dataOf(copy), { recursive: true })
    for (const name of ['PG_VERSION', 'postmaster.pid', 'postmaster.opts'])
      cpSync(join(dataOf(folder), name), join(dataOf(copy), name))
    for (const name of ['', 'PG_VERSION', 'postmaster.pid', 'postmaster.opts'])
      chmodSync(join(dataOf(copy), name), 0o755)
    await expect(stopLeftover(copy, binaries, 0)).rejects.toThrow('It got no signal')
    await run(database.url, 'select 1')
  })

  test('is another program after a restart of the machine, which gets no signal', async () => {
    const one = devFolder()
    mkdirSync(dataOf(one))
    writeFileSync(join(dataOf(one), 'PG_VERSION'), '18')
    const { account } = binaries
    const other = spawn('sleep', ['1000'], { ...account })
    const lines = [other.pid, dataOf(one), 1, 1, '', '127.0.0.1', '', 'ready']
    writeFileSync(join(dataOf(one), 'postmaster.pid'), `${lines.join('\n')}\n`)
    expect(hasLeftover(one.path)).toBe(true)
    await expect(stopLeftover(one, binaries, 0)).rejects.toThrow(
      `The process ${other.pid} runs, and it is not clear`,
    )
    expect(other.signalCode).toBeNull()
    other.kill()
    await once(other, 'exit')
    await stopLeftover(one, binaries, 0)
  })
})

describe('the programs of PostgreSQL', () => {
  test('get none of the other variables of the caller', async () => {
    expect(process.env['VITEST']).toBeDefined()
    const { output } = await runPostgresProgram('/usr/bin/env', [], binaries.account)
    const names = output.split('\n').map((line) => line.split('=')[0] ?? '')
    const passed = ['PATH', 'HOME', 'TZ', 'TMPDIR', 'LC_ALL']
    expect(names.filter((name) => !passed.includes(name))).toEqual([])
    expect(names).toContain('PATH')
  })
})

describe('the start of PostgreSQL', LONG, () => {
  test.runIf(process.platform === 'linux')('leaves no process when Ctrl-C ends it', async () => {
    const one = devFolder()
    // It has not yet written its pid file.
    const postgres = join(one.path, 'starting')
    writeFileSync(postgres, '#!/bin/sh\nwhile :; do sleep 1; done\n', { mode: 0o755 })
    const start = startPostgres(one, { ...binaries, postgres }, AbortSignal.abort())
    await expect(start).rejects.toThrow('aborted')
    expect(processesWith(dataOf(one))).toEqual([])
  })

  test.each([
    ['could not bind IPv4 address', false, false],
    ['FATAL: database files are incompatible with server', false, true],
    ['FATAL: database files are incompatible with server', true, false],
  ])('recommends --fresh only if it helps: %s, messages of a broker: %s', async (...row) => {
    const [text, hasMessages, isRecommended] = row
    const one = devFolder()
    if (hasMessages) writeFileSync(join(one.path, ATTACHED), '{}')
    const postgres = join(one.path, 'failing')
    writeFileSync(postgres, `#!/bin/sh\necho '${text}'\nexit 1\n`, { mode: 0o755 })
    const failure = await startPostgres(one, { ...binaries, postgres }, signal).then(
      () => 'started',
      String,
    )
    expect(failure).toContain(text)
    expect(failure.includes('--fresh')).toBe(isRecommended)
  })

  test.runIf(process.getuid?.() === 0)(
    'hints at --database for a user without a name',
    async () => {
      const one = devFolder()
      chmodSync(one.path, 0o755)
      const nameless = { ...binaries, account: { uid: 54_321, gid: 54_321 } }
      await expect(createCluster(one, nameless)).rejects.toThrow(
        /could not look up effective user ID 54321[\s\S]*a user with a name.*--database/,
      )
    },
  )

  test('reports a process that a signal has ended', async () => {
    const one = devFolder()
    const postgres = join(one.path, 'killed')
    writeFileSync(postgres, '#!/bin/sh\necho out of memory\nkill -9 $$\n', { mode: 0o755 })
    const startedAt = performance.now()
    await expect(startPostgres(one, { ...binaries, postgres }, signal)).rejects.toThrow(
      /PostgreSQL did not start:\nout of memory/,
    )
    expect(performance.now() - startedAt).toBeLessThan(50_000)
  })
})
