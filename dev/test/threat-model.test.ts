import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ROOT } from '../check/workspace.ts'

/** The scenarios of `pnpm faults server`, as one text. */
const scenarios = globSync('faults/src/server/**/*.ts', { cwd: ROOT })
  .map((path) => readFileSync(join(ROOT, path), 'utf8'))
  .join('\n')

const isTest = (name: string) =>
  existsSync(join(ROOT, name)) || existsSync(join(ROOT, 'packages/server/test', name))

describe.each(['docs/threat-model.md', 'docs/security-requirements.md'])('%s', (page) => {
  const names = [...readFileSync(join(ROOT, page), 'utf8').matchAll(/`([^`\s]+)`/g)].map(
    ([, name = '']) => name,
  )

  test('names tests that exist', () => {
    const tests = names.filter((name) => name.endsWith('.test.ts'))
    expect(tests.length).toBeGreaterThan(10)
    expect(tests.filter((name) => !isTest(name))).toEqual([])
  })

  test('names attacks that exist', () => {
    const attacks = names.filter((name) => /^attack-\w+$/.test(name))
    expect(attacks.length).toBeGreaterThan(5)
    const isScenario = (name: string) =>
      scenarios.includes(`'${name}'`) || scenarios.includes(`'${name.replace('attack-', '')}'`)
    expect(attacks.filter((name) => !isScenario(name))).toEqual([])
  })
})
