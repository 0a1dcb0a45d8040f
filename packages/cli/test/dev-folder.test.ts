import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { ATTACHED, clearFolder, lockFolder, readFolder } from '../src/dev/folder.ts'

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

describe('--fresh', () => {
  test('deletes only names that redrive dev creates', () => {
    const folder = devFolder()
    mkdirSync(join(folder, 'postgres', 'base'), { recursive: true })
    for (const name of ['server.log', 'shop.json', 'redrive.config.json', 'notes.md'])
      writeFileSync(join(folder, name), '')
    const locked = lockFolder(folder)
    clearFolder(locked)
    locked.release()
    expect(readdirSync(folder)).toEqual(['notes.md'])
  })

  test('keeps everything when messages of a broker are in the folder', () => {
    const folder = devFolder()
    writeFileSync(join(folder, ATTACHED), '{}')
    const locked = lockFolder(folder)
    expect(() => clearFolder(locked)).toThrow('nothing was deleted')
    locked.release()
    expect(existsSync(join(folder, ATTACHED))).toBe(true)
  })
})
