import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accountsFor } from '../src/dev/account.ts'
import { type Binaries, findBinaries } from '../src/dev/binaries.ts'
import { claimDatabase } from '../src/dev/claim-database.ts'
import { clearFolder, type DevFolder, lockFolder, readFolder } from '../src/dev/folder.ts'
import { currentPlatform, packageFor } from '../src/dev/platforms.ts'
import { createCluster, type DevDatabase, startPostgres } from '../src/dev/postgres.ts'

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
