import { describe, expect, test } from 'vitest'
import { type Family, type Sample, told } from '../src/families/family.ts'
import { SEEN, sampleOf, UNSEEN } from '../src/families/families.ts'
import {
  type FamilyScore,
  precisionOf,
  signatureOfSample,
  wrongShare,
} from '../src/families/precision.ts'

const SAMPLES = 200
const SEED = 20_261_115
const WRONG_MAX = 0.02
const WRONG_UNSEEN_MAX = 0.03

const ALL = [...SEEN, ...UNSEEN]

/** All families in one source. The held-out ones are scored among all, because they could merge with any. */
const scores = precisionOf([...UNSEEN, ...SEEN], SAMPLES, SEED)

/** Returns the families with errors when there are more wrong samples than `max`. */
function wrongAbove(max: number, scores: readonly FamilyScore[]): readonly FamilyScore[] {
  if (wrongShare(scores) <= max) return []
  return scores.filter(({ split, merged }) => split + merged > 0)
}

describe('error families', () => {
  test('are at least two hundred with different names', () => {
    expect(ALL.length).toBeGreaterThanOrEqual(200)
    expect(new Set(ALL.map(({ name }) => name)).size).toBe(ALL.length)
  })

  test('return the same failure for the same seed', () => {
    for (const family of ALL) {
      const [first, again] = [sampleOf(family, 7), sampleOf(family, 7)]
      expect(signatureOfSample(again)).toBe(signatureOfSample(first))
      expect(wordsOf(again)).toBe(wordsOf(first))
    }
  })

  test('are grouped with at most 2 % split or merged', () => {
    expect(wrongAbove(WRONG_MAX, scores)).toEqual([])
  })

  test('that were held out are grouped as well', () => {
    // There are few, so one family counts for some percent.
    expect(wrongAbove(WRONG_UNSEEN_MAX, scores.slice(0, UNSEEN.length))).toEqual([])
  })

  test('are never merged', () => {
    expect(scores.filter(({ merged }) => merged > 0)).toEqual([])
  })
})

describe('precision', () => {
  const family = (name: string, message: (at: number) => string): Family => ({
    name,
    sample: ({ int }) => told({ type: 'Error', message: message(int(0, 3)), stack: '' }),
  })
  const scored = (...families: readonly Family[]) => precisionOf(families, 100, 1)

  test('counts samples outside the main group of their family', () => {
    const [score] = scored(family('a', (at) => (at === 0 ? 'odd' : 'usual')))
    expect(score?.split).toBeGreaterThan(10)
    expect(score?.split).toBeLessThan(50)
    expect(score?.merged).toBe(0)
  })

  test('counts samples in a group with at least as many of other families', () => {
    const both = scored(
      family('a', () => 'same'),
      family('b', () => 'same'),
    )
    expect(both.map(({ merged }) => merged)).toEqual([100, 100])
    const [few, many] = scored(
      family('few', (at) => (at === 0 ? 'many' : 'few')),
      family('many', () => 'many'),
    )
    expect(few?.merged).toBe(few?.split)
    expect(many?.merged).toBe(0)
    expect(wrongShare(scored(family('a', () => 'same')))).toBe(0)
  })
})

function wordsOf(sample: Sample): string {
  return 'told' in sample ? JSON.stringify(sample.told) : String((sample.thrown as Error).stack)
}
