import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { edited, type Mutant } from '../src/hunt.ts'
import { ROOT } from '../src/services.ts'
import { SUBJECTS } from '../src/subjects.ts'

const changes = ({ edits }: Mutant) =>
  edits.every((edit) => {
    const source = readFileSync(join(ROOT, edit.file), 'utf8')
    return edited(source, edit) !== source
  })

describe.each(SUBJECTS)('the mutants of $name', ({ mutants, scenarios, smoke }) => {
  it.each(mutants)('changes the source as it is today: $name', (mutant) => {
    expect(changes(mutant)).toBe(true)
  })

  it('are assigned to scenarios that exist', () => {
    const unknown = mutants.filter(
      ({ scenario }) => !scenarios.some((name) => name.startsWith(scenario)),
    )
    expect(unknown.map(({ name }) => name)).toEqual([])
  })

  it('has a --smoke form', () => {
    expect(smoke.length).toBeGreaterThan(0)
  })
})

describe('an edit', () => {
  it('is refused when the source no longer contains the text', () => {
    expect(() => edited('new', { file: 'a.ts', find: 'old', replace: '' })).toThrow(
      'a.ts no longer contains',
    )
  })
})
