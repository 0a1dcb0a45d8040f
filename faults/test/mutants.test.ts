import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Mutant } from '../src/harness/mutant.ts'
import { edited } from '../src/harness/run-mutants.ts'
import { ROOT } from '../src/harness/services.ts'
import { SUBJECTS } from '../src/subjects.ts'

const changes = ([, , , ...edits]: Mutant) =>
  edits.every((edit) => {
    const source = readFileSync(join(ROOT, edit[0]), 'utf8')
    return edited(source, edit) !== source
  })

describe.each(SUBJECTS)('the mutants of $name', ({ mutants, scenarios }) => {
  it.each(mutants.map((mutant) => ({ name: mutant[0], mutant })))(
    'changes the source as it is today: $name',
    ({ mutant }) => {
      expect(changes(mutant)).toBe(true)
    },
  )

  it('are assigned to scenarios that exist', () => {
    const unknown = mutants.filter(
      ([, scenario]) => !scenarios.some(({ name }) => name.startsWith(scenario)),
    )
    expect(unknown.map(([name]) => name)).toEqual([])
  })

  it('has a --smoke form', () => {
    expect(scenarios.some(({ isInSmoke }) => isInSmoke)).toBe(true)
  })
})

describe('an edit', () => {
  it('is rejected when the source no longer contains the text', () => {
    expect(() => edited('new', ['a.ts', 'old', ''])).toThrow('a.ts no longer contains')
  })
})
