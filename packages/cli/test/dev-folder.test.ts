import { spawnSync } from 'node:child_process'
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { accountsFor } from '../src/dev/account.ts'
import { ATTACHED, clearFolder, lockFolder, readFolder } from '../src/dev/folder.ts'
import { claimMode, expectMode, modeOf } from '../src/dev/mode.ts'
import { quoted } from '../src/dev/quoted.ts'

const root = mkdtempSync(join(tmpdir(), 'redrive-dev-folder-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let folders = 0
function emptyFolder(): string {
  const folder = join(root, String(folders++))
  mkdirSync(folder)
  return folder
}

/** Creates a folder of `redrive dev` and returns its path. */
function devFolder(): string {
  const folder = emptyFolder()
  const locked = lockFolder(folder)
  readFolder(locked)
  locked.release()
  return folder
}

describe('the marker of a folder', () => {
  test.each(['dev.json', 'redrive-dev.json'])(
    'is not a file of another program with the name %s',
    (name) => {
      const folder = emptyFolder()
      writeFileSync(join(folder, name), '{"password":"0123456789abcdef"}')
      writeFileSync(join(folder, 'thesis.txt'), 'mine')
      expect(() => lockFolder(folder)).toThrow(/[Nn]othing was changed.*--dir/)
      expect(readdirSync(folder)).toEqual([name, 'thesis.txt'].sort())
    },
  )

  test.each(['', '{"redrive":"dev","pass', '[]'])(
    'gives an error with what to do when its content is %j',
    (content) => {
      const folder = devFolder()
      const file = join(folder, 'redrive-dev.json')
      writeFileSync(file, content)
      expect(() => lockFolder(folder)).toThrow(
        `The file "${file}" is damaged, or redrive dev did not create it. Nothing was changed. Choose another folder with --dir.`,
      )
    },
  )
})

test.runIf(process.getuid?.() === 0)(
  'a start as root keeps the marker readable for the owner',
  () => {
    const folder = devFolder()
    chownSync(folder, NOBODY, NOBODY)
    claimMode(folder, 'shop')
    expect(statSync(join(folder, 'redrive-dev.json'))).toMatchObject({ uid: NOBODY, gid: NOBODY })
  },
)

/** A user without rights. */
const NOBODY = 65_534

describe('--fresh', () => {
  test('deletes only names that redrive dev creates', () => {
    const folder = devFolder()
    mkdirSync(join(folder, 'postgres', 'base'), { recursive: true })
    for (const name of ['server.log', 'shop.json', 'redrive.config.json', 'notes.md'])
      writeFileSync(join(folder, name), '')
    const locked = lockFolder(folder)
    clearFolder(locked)
    locked.release()
    expect(readdirSync(folder)).toEqual(['.gitignore', 'notes.md', 'redrive-dev.json'])
  })

  test('keeps everything when messages of a broker are in the folder', () => {
    const folder = devFolder()
    writeFileSync(join(folder, ATTACHED), '{}')
    claimMode(folder, modeOf('amqp://rabbit', "eve's orders"))
    const locked = lockFolder(folder)
    expect(() => clearFolder(locked)).toThrow(
      `nothing was deleted. To return them, start redrive dev --attach without --fresh, and run in another terminal: redrive put-back 'eve'\\''s orders' --config ${join(folder, 'redrive.config.json')}.`,
    )
    locked.release()
    expect(existsSync(join(folder, ATTACHED))).toBe(true)
  })
})

describe('the lock of a folder', () => {
  const lockOf = (folder: string) => join(folder, 'redrive-dev.lock')
  const write = (folder: string, owner: object) =>
    writeFileSync(lockOf(folder), JSON.stringify({ token: 'other', host: hostname(), ...owner }))
  /** The id of a process that has ended. */
  const endedPid = () => spawnSync(process.execPath, ['--version']).pid

  test('refuses a second start, also in the same process', () => {
    const folder = devFolder()
    const first = lockFolder(folder)
    expect(() => lockFolder(folder)).toThrow(/uses the folder .*--dir.*delete ".*redrive-dev.lock"/)
    first.release()
    lockFolder(folder).release()
    expect(existsSync(lockOf(folder))).toBe(false)
  })

  test.each([
    ['a running process', { pid: process.ppid }],
    ['a process of another host', { pid: endedPid(), host: 'other.example' }],
  ])('is kept when it belongs to %s', (_, owner) => {
    const folder = devFolder()
    write(folder, owner)
    const before = readFileSync(lockOf(folder), 'utf8')
    expect(() => lockFolder(folder)).toThrow(`process ${owner.pid} on the host`)
    expect(readFileSync(lockOf(folder), 'utf8')).toBe(before)
  })

  test.each([
    ['has ended', endedPid],
    ['had the id of this process', () => process.pid],
  ])('is replaced when its process %s', (_, pid) => {
    const folder = devFolder()
    write(folder, { pid: pid() })
    const { release } = lockFolder(folder)
    expect(JSON.parse(readFileSync(lockOf(folder), 'utf8'))).toMatchObject({
      pid: process.pid,
      host: hostname(),
      token: expect.not.stringMatching('other') as unknown,
    })
    release()
    expect(readdirSync(folder)).toEqual(['.gitignore', 'redrive-dev.json'])
  })

  test('is kept at the release when another process has replaced it', () => {
    const folder = devFolder()
    const { release } = lockFolder(folder)
    write(folder, { pid: process.ppid })
    release()
    expect(existsSync(lockOf(folder))).toBe(true)
  })

  test('is refused while another process replaces it', () => {
    const folder = devFolder()
    write(folder, { pid: endedPid() })
    writeFileSync(`${lockOf(folder)}.takeover`, '{}')
    expect(() => lockFolder(folder)).toThrow('Another redrive dev starts in the folder')
  })
})

describe('the mode of a folder', () => {
  const orders = modeOf('amqp://app:secret@rabbit', 'orders')

  test('is the shop, or a broker and a queue', () => {
    const folder = devFolder()
    claimMode(folder, 'shop')
    expectMode(folder, 'shop')
    expect(() => expectMode(folder, orders)).toThrow(
      /has the data of the shop, and this start is for the queue "orders" on rabbit:5672\..*--dir/,
    )
  })

  test('contains no password, and differs for another broker, virtual host or queue', () => {
    const folder = devFolder()
    claimMode(folder, orders)
    expect(readFileSync(join(folder, 'redrive-dev.json'), 'utf8')).not.toContain('secret')
    expectMode(folder, modeOf('amqp://other:user@rabbit:5672/', 'orders'))
    for (const [address, queue] of [
      ['amqp://other', 'orders'],
      ['amqp://rabbit/shop', 'orders'],
      ['amqp://rabbit', 'payments'],
    ] as const) {
      expect(() => expectMode(folder, modeOf(address, queue))).toThrow('Nothing was changed')
    }
    expect(() => expectMode(folder, 'shop')).toThrow('this start is for the shop')
  })
})

test.each([
  ['linux', 'a/b-c.json', 'a/b-c.json'],
  ['linux', 'my folder/x', "'my folder/x'"],
  ['linux', "eve's $HOME", "'eve'\\''s $HOME'"],
  ['win32', 'C:\\my folder', '"C:\\my folder"'],
])('quotes arguments of printed commands on %s: %s', (platform, text, expected) => {
  expect(quoted(text, platform)).toBe(expected)
})

test.runIf(process.getuid?.() === 0)('root takes the owner of the database files first', () => {
  const folder = devFolder()
  const nobody = Number(spawnSync('id', ['-u', 'nobody']).stdout)
  mkdirSync(join(folder, 'postgres'))
  chownSync(join(folder, 'postgres'), nobody, 7)
  const caller = { SUDO_UID: String(spawnSync('id', ['-u', 'daemon']).stdout).trim() }
  expect(accountsFor(folder, caller)[0]).toEqual({ uid: nobody, gid: 7 })
  rmSync(join(folder, 'postgres'), { recursive: true })
  expect(accountsFor(folder, caller)[0]?.uid).toBe(Number(caller.SUDO_UID))
})
