import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { ended, runChild, start } from './child.ts'

const run = promisify(execFile)
const MAIN = new URL('../src/main.ts', import.meta.url).pathname

/** Prints every loaded module on stderr at exit. */
const LOAD_REPORTER = `data:text/javascript,${encodeURIComponent(`
import { registerHooks } from 'node:module'
const loaded = []
registerHooks({ load: (url, context, next) => { loaded.push(url); return next(url, context) } })
process.on('exit', () => process.stderr.write(loaded.join('\\n')))`)}`

async function loadedBy(...args: readonly string[]): Promise<readonly string[]> {
  const { stderr } = await run(process.execPath, [
    '--conditions=@redrive/source',
    '--import',
    LOAD_REPORTER,
    MAIN,
    ...args,
  ])
  return stderr.split('\n').map((url) => url.replace(/^.*node_modules\//, ''))
}

describe('a quick start', () => {
  test('loads only commander, files of the CLI and the fields of filters for --help', async () => {
    const loaded = await loadedBy('--help')
    expect(loaded.length).toBeGreaterThan(5)
    const others = loaded.filter(
      (url) =>
        !url.startsWith('node:') && !/\/packages\/(cli\/src\/|api\/src\/(enums|filter))/.test(url),
    )
    expect(others.filter((url) => !url.startsWith('commander/'))).toEqual([])
    expect(loaded.filter((url) => url.includes('/commands/'))).toEqual([])
  })

  test('prints the version, and rejects an unknown command', async () => {
    expect(await runChild(['--version'])).toMatchObject({ code: 0, stdout: '0.1.0\n' })
    expect(await runChild(['grops'])).toMatchObject({ code: 2, stdout: '' })
    expect((await runChild([])).code).toBe(2)
  })
})

describe('output without a reader', () => {
  test('keeps the exit code when stderr is closed', async () => {
    const child = start(['grops'])
    child.stderr.destroy()
    expect((await ended(child)).code).toBe(2)
  })

  test('does not fail when stdout is closed', async () => {
    const child = start(['--help'])
    child.stdout.destroy()
    expect(await ended(child)).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('completion', () => {
  test.each(['zsh', 'bash', 'fish', 'powershell'])('prints a script for %s', async (shell) => {
    const { code, stdout } = await runChild(['completion', shell])
    expect(code).toBe(0)
    expect(stdout).toContain('redrive')
  })

  test('completes commands and flags', async () => {
    expect((await runChild(['complete', '--', 'replay', 'p'])).stdout).toMatch(/^plan\t/m)
    expect((await runChild(['complete', '--', 'replay', 'plan', '--ra'])).stdout).toMatch(
      /^--rate/m,
    )
    expect((await runChild(['completion', 'tcsh'])).code).toBe(2)
  })
})

describe('colour', () => {
  const help = (env: Readonly<Record<string, string>>, ...args: string[]) =>
    runChild(['whoami', ...args], { REDRIVE_URL: 'http://127.0.0.1:1', ...env })

  test('follows NO_COLOR, FORCE_COLOR and --no-color', async () => {
    const hasColor = ({ stderr }: { stderr: string }) => stderr.includes('\u001b[31m')
    expect(hasColor(await help({}))).toBe(false)
    expect(hasColor(await help({ FORCE_COLOR: '1' }))).toBe(true)
    expect(hasColor(await help({ FORCE_COLOR: '1', NO_COLOR: '1' }))).toBe(false)
    expect(hasColor(await help({ FORCE_COLOR: '1' }, '--no-color'))).toBe(false)
    expect(hasColor(await help({ FORCE_COLOR: '0' }))).toBe(false)
  })
})
