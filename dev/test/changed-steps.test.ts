import { execFileSync, spawnSync } from 'node:child_process'
import { extname, join } from 'node:path'
import { expect, test } from 'vitest'
import { readGraph } from '../check/changed/graph.ts'
import { select } from '../check/changed/select.ts'
import { limitSteps } from '../check/changed/steps.ts'
import { ROOT } from '../check/workspace.ts'
import { PROOFS } from '../proofs/table.ts'

const REAL = readGraph(ROOT)

/** The names of all steps that `--changed` may select. */
const NAMES = [
  'types',
  'format',
  'lint',
  'imports',
  'purity',
  'notes',
  'reference',
  'unused',
  'tests',
]
const ALL = NAMES.map((name) => ({ name, command: name }))

const stepsOf = (file: string) => limitSteps(ALL, [file], select([file], REAL, []))
const namesOf = (file: string) => stepsOf(file).map(({ name }) => name)

test('runs the steps that read a changed setting, on all files', () => {
  const commands = (file: string) => stepsOf(file).map(({ command }) => command)
  expect(commands('tsconfig.base.json')).toEqual(NAMES)
  expect(commands('.oxlintrc.json')).toEqual(expect.arrayContaining(['lint']))
  expect(commands('biome.json')).toEqual(expect.arrayContaining(['format']))
  expect(commands('knip.jsonc')).toEqual(expect.arrayContaining(['unused']))
})

test.each(['packages/console/src/main.tsx', 'packages/core/src/decide.ts'])(
  'runs types, format, lint and imports for %s',
  (file) => {
    const steps = stepsOf(file)
    expect(steps.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['types', 'format', 'lint', 'imports']),
    )
    for (const name of ['format', 'lint']) {
      expect(steps.find((step) => step.name === name)?.command).toContain(`'${file}'`)
    }
  },
)

const TRACKED = execFileSync('git', ['ls-files'], { cwd: ROOT, encoding: 'utf8' })
  .split('\n')
  .filter(Boolean)
const SAMPLES = [
  ...Map.groupBy(TRACKED, (path) => `${path.split('/')[0]} ${extname(path)}`).values(),
].flatMap((paths) => paths.slice(0, 2))

test('formats every kind of file that biome formats', () => {
  const { stderr, stdout } = spawnSync(
    join(ROOT, 'node_modules/.bin/biome'),
    ['format', '--verbose', '--max-diagnostics=none', ...SAMPLES],
    { cwd: ROOT, encoding: 'utf8' },
  )
  const known = `${stdout}${stderr}`.split('Files processed:')[1]?.split('Files fixed:')[0] ?? ''
  const formatted = [...known.matchAll(/^ +- (.+)$/gm)].map(([, path = '']) => path)
  expect(new Set(formatted.map(extname))).toEqual(
    new Set(['.ts', '.tsx', '.js', '.mjs', '.css', '.json', '.jsonc', '.yml']),
  )
  expect(formatted.filter((file) => !namesOf(file).includes('format'))).toEqual([])
})

/** No step of the gate and no proof reads these. */
const UNREAD = /^(LICENSE|\.editorconfig|\.gitignore)$/

test('selects a step or a proof for every kind of file', () => {
  const isMissed = (file: string) =>
    namesOf(file).length === 0 && select([file], REAL, PROOFS).proofs.length === 0
  expect(SAMPLES.filter((file) => isMissed(file) && !UNREAD.test(file))).toEqual([])
})
