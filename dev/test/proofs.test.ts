import { existsSync, globSync, readFileSync } from 'node:fs'
import { join, matchesGlob } from 'node:path'
import { expect, test } from 'vitest'
import { ROOT } from '../check/workspace.ts'
import { chooseProofs } from '../proofs/main.ts'
import { PROOFS } from '../proofs/table.ts'

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
