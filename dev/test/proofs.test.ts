import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, matchesGlob } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { ROOT } from '../check/workspace.ts'
import { chooseProofs, playInLanes } from '../proofs/main.ts'
import { type Proof, PROOFS } from '../proofs/table.ts'

const filesOf = (pattern: string) =>
  globSync(pattern, { cwd: ROOT, exclude: (path) => path.includes('node_modules') })

test('each proof has a unique name', () => {
  expect(new Set(PROOFS.map(({ name }) => name)).size).toBe(PROOFS.length)
})

test('each command of a proof is a script of the workspace', () => {
  const manifest = readFileSync(join(ROOT, 'package.json'), 'utf8')
  const { scripts } = JSON.parse(manifest) as { scripts: Record<string, string> }
  const used = PROOFS.flatMap(({ command }) => /^pnpm ([a-z]\w*)/.exec(command)?.[1] ?? [])
  expect(used.filter((script) => scripts[script] === undefined)).toEqual([])
})

test('each program that a proof starts exists', () => {
  const started = PROOFS.flatMap(({ starts }) => starts)
  const files = started.map((path) => path.replace(/#text$/, ''))
  expect(files.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
})

test('no command needs more than sh, which does not expand braces', () => {
  const unquoted = PROOFS.map(({ command }) => command.replaceAll(/'[^']*'|"[^"]*"|\$\{/g, ''))
  expect(unquoted.filter((command) => command.includes('{'))).toEqual([])
})

test('each file that ends in .proof.ts belongs to exactly one proof', () => {
  const files = filesOf('packages/**/test/**/*.proof.ts')
  expect(files.length).toBeGreaterThan(5)
  const patterns = PROOFS.flatMap(({ command }) => command.match(/\S*\.proof(\.ts)?\b/g) ?? [])
  const owners = (file: string) =>
    patterns.filter((pattern) => matchesGlob(file, pattern) || file.endsWith(`/${pattern}.ts`))
  expect(files.filter((file) => owners(file).length !== 1)).toEqual([])
})

test('each example has its demo in one tier', () => {
  for (const path of filesOf('examples/*/src/demo.ts')) {
    expect(PROOFS.filter(({ starts }) => starts.includes(path))).toHaveLength(1)
  }
})

test('a tier, names, or both select proofs, each once and in the order of the table', () => {
  const merge = PROOFS.filter(({ tier }) => tier === 'merge')
  expect(chooseProofs(['merge'])).toEqual(merge)
  expect(chooseProofs(['readme', 'merge', 'readme'])).toEqual(merge)
  expect(chooseProofs(['terminal', 'simulate'])?.map(({ name }) => name)).toEqual([
    'simulate',
    'terminal',
  ])
})

test('the lanes run at the same time, and each proof keeps its result', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'redrive-proofs-'))
  const write = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
  vi.stubEnv('REDRIVE_TIMES', undefined)
  onTestFinished(() => {
    write.mockRestore()
    vi.unstubAllEnvs()
    rmSync(folder, { recursive: true })
  })
  // Each waits for the files of all, so they end only if they run at the same time.
  const meet = (own: string) =>
    `cd ${folder}; touch ${own}; until [ -e a -a -e b -a -e c ]; do sleep 0.02; done`
  const proof = (name: string, command: string): Proof => ({
    ...{ name, command, tier: 'merge', minutes: 0, starts: [], shows: name },
  })
  const results = await playInLanes([
    { ...proof('computes', `${meet('a')}; echo 'PASS 7 seeds, goal 7'`), lane: 'processor' },
    proof('serves', `${meet('b')}; exit 3`),
    { ...proof('packs', meet('c')), lane: 'packages' },
    proof('serves too', 'true'),
  ])
  expect(results.map(({ proof: { name }, ok, verdict }) => [name, ok, verdict])).toEqual([
    ['computes', true, 'PASS 7 seeds, goal 7'],
    ['serves', false, 'SHORT serves exit status 3, goal 0'],
    ['packs', true, 'PASS packs exit status 0, goal 0'],
    ['serves too', true, 'PASS serves too exit status 0, goal 0'],
  ])
  const printed = write.mock.calls.map(([text]) => String(text))
  expect(printed.filter((text) => text.includes('=== computes'))).toEqual([
    expect.stringContaining('PASS 7 seeds, goal 7\ncomputes took'),
  ])
})
