import { describe, expect, test } from 'vitest'
import { type Report, scoreOf, summarise, survivorsOf } from '../mutate/report.ts'

const mutant = (status: string, line: number, from: number, to: number, replacement = '') => ({
  mutatorName: 'EqualityOperator',
  replacement,
  status,
  location: { start: { line, column: from }, end: { line, column: to } },
})

const report: Report = {
  files: {
    'src/a.ts': {
      source: 'const a = b > c\nconst d = e\n',
      mutants: [
        mutant('Killed', 1, 11, 16),
        mutant('Timeout', 1, 11, 16),
        mutant('Survived', 1, 11, 16, 'b >= c'),
        mutant('NoCoverage', 2, 11, 12, 'f'),
        mutant('Ignored', 1, 1, 2),
        mutant('RuntimeError', 1, 1, 2),
      ],
    },
    'src/b.ts': { source: '', mutants: [mutant('Killed', 1, 1, 1)] },
    'src/types.ts': { source: '', mutants: [] },
  },
}

describe('the report on mutants', () => {
  test('counts a timeout as killed and code that never ran as survived', () => {
    expect(summarise(report)).toEqual([
      { file: 'src/a.ts', killed: 2, survived: 2, percent: 50 },
      { file: 'src/b.ts', killed: 1, survived: 0, percent: 100 },
    ])
    expect(scoreOf(report)).toEqual({ file: 'all', killed: 3, survived: 2, percent: 60 })
  })

  test('does not divide by zero', () => {
    expect(scoreOf({ files: {} }).percent).toBe(0)
  })

  test('shows each survivor with its position and its change', () => {
    expect(survivorsOf(report)).toEqual([
      'src/a.ts:1:11 EqualityOperator: `b > c` → `b >= c`',
      'src/a.ts:2:11 EqualityOperator: `e` → `f` (never run)',
    ])
  })

  test('shows a change of several lines in one line, and shortens a long one', () => {
    const source = `x {\n${'a'.repeat(90)}\n}`
    const block = {
      ...mutant('Survived', 1, 3, 2, '{}'),
      location: { start: { line: 1, column: 3 }, end: { line: 3, column: 2 } },
    }
    expect(survivorsOf({ files: { 'c.ts': { source, mutants: [block] } } })).toEqual([
      `c.ts:1:3 EqualityOperator: \`{ ${'a'.repeat(78)}…\` → \`{}\``,
    ])
  })
})
