import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { huntAll, mutated, ROOT } from '../src/hunt.ts'
import { MUTANTS } from '../src/mutants.ts'

/**
 * One of each kind: a lost message, an early retry, a wrong count. `pnpm simulate --mutants` plays
 * all.
 */
const FEW = ['acknowledge before publish', 'retry early', 'settle failures']

describe('the mutants of the simulator', () => {
  it.each(MUTANTS)('changes the source as it is today: $name', (mutant) => {
    const source = readFileSync(join(ROOT, mutant.file), 'utf8')
    expect(mutated(source, mutant)).not.toBe(source)
  })

  it('are rejected when the source no longer contains the text', () => {
    const mutant = { name: 'old', file: 'a.ts', find: 'old', replace: '' }
    expect(() => mutated('new', mutant)).toThrow('a.ts no longer contains')
  })
})

describe('the simulator', () => {
  it('finds a few of its mutants', async () => {
    const mutants = MUTANTS.filter(({ name }) => FEW.includes(name))
    const played = await huntAll(mutants, { workers: 1 })
    expect(played).toHaveLength(FEW.length)
    expect(played.filter(({ isCaught }) => !isCaught)).toEqual([])
  }, 120_000)
})
